"""Whether remit can work here: the machine, what is configured, and each server's handshake."""
