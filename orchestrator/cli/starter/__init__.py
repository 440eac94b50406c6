"""The files that `remit init` writes; they are data, and nothing here imports them."""
