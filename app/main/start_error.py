"""What keeps a process from starting."""


class StartError(Exception):
    """The process cannot start with these values; the text says why."""
