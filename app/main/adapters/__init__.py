"""What the API server, or another part of this process, is for those that work with ports."""
