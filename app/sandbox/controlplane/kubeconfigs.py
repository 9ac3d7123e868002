"""Kubeconfig files: one cluster, one user, certificate or token."""

from __future__ import annotations

from pathlib import Path

import yaml

from app.sandbox.controlplane.certificates import KeyPair


def write(
    path: Path,
    *,
    server: str,
    authority: Path | None = None,
    client: KeyPair | None = None,
    token: str | None = None,
) -> Path:
    """Write a kubeconfig whose only context is `pumice` and return its path."""
    cluster = {"server": server}
    if authority is not None:
        cluster["certificate-authority"] = str(authority)
    user: dict[str, str] = {}
    if client is not None:
        user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    if token is not None:
        user = {"token": token}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pumice",
        "contexts": [{"name": "pumice", "context": {"cluster": "pumice", "user": "pumice"}}],
        "clusters": [{"name": "pumice", "cluster": cluster}],
        "users": [{"name": "pumice", "user": user}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
