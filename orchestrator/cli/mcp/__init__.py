"""`remit mcp`: the servers that are configured. Each command stands in a module of its own."""
