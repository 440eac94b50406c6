"""`remit audit`: records of runs, which are only read. Each command stands in a module of its own."""
