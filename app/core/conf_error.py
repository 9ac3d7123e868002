"""The one error of a scheduler configuration that cannot be used.

Raised while text is read and while plugins are configured; the message says where and what, so it
can be shown to the operator as it is. Whoever loads configurations keeps the previous one.
"""


class ConfError(ValueError):
    """The configuration is invalid; ``str()`` of it tells why."""
