"""Pods on the network of their node: how they find services by name."""

from collections.abc import Mapping
from typing import Any

HOST_DNS_POLICY = "ClusterFirstWithHostNet"


def needs_dns_policy(pod: Mapping[str, Any]) -> bool:
    """Whether pods of this spec use the host's network and would not find services by its names."""
    return pod.get("hostNetwork") is True and not pod.get("dnsPolicy")
