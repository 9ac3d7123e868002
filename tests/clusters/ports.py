"""Free ports on the loopback address: the sandbox's."""

from app.sandbox.controlplane.free_ports import free_port

__all__ = ["free_port"]
