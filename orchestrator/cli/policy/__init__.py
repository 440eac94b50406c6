"""`remit policy`: policy files, without a session. Each command stands in a module of its own."""
