"""Kubeconfig files of a test cluster: the sandbox's."""

from app.sandbox.controlplane.kubeconfigs import write

__all__ = ["write"]
