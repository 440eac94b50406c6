"""`remit top`: a session on a terminal, as it works: agents, events, inspector, what is asked."""
