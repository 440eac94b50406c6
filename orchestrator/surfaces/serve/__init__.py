"""The local web page: what runs now and what ran, for a browser on this machine."""
