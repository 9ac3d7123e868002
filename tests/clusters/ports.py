"""Free ports on the loopback address: the sandbox's."""

from app.sandbox.controlplane.ports import free_port

__all__ = ["free_port"]
