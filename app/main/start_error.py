"""What keeps a process from starting."""


class StartError(Exception):
    """It cannot start with these values; the text says why."""
