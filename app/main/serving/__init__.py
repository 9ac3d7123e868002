"""Sockets, servers and certificates of the processes."""
