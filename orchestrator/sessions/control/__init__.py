"""A session's control socket: who is at work and what is asked, for another terminal of the same user."""
