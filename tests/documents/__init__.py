"""The documents: what is generated in them, and that all they show is so."""
