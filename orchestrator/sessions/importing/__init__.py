"""Servers that other MCP clients were told of, rewritten as entries of our own files."""
