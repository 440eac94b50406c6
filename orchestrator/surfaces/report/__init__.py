"""The report of a run: what its audit logs say, as one page for people."""
