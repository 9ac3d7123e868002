"""The one error of a scheduler configuration that cannot be used.

The error is raised while text is read and while plugins are configured; the message says where and
what, so it can be shown to the operator as it is. The loader of configurations keeps the previous
one.
"""


class ConfError(ValueError):
    """The configuration is invalid; ``str()`` of it tells why."""
