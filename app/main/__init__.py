"""The composition root: adapters, caches, use cases and servers are built and wired here only."""
