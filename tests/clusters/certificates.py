"""Certificates of a test cluster: the sandbox's."""

from app.sandbox.controlplane.certificates import Authority, KeyPair, write_service_account_key

__all__ = ["Authority", "KeyPair", "write_service_account_key"]
