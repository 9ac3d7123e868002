"""`pumice crds`: every CustomResourceDefinition as one YAML stream, for `kubectl apply -f -`."""

from __future__ import annotations

import typer

from app.wire import manifests


def crds() -> None:
    """Print the CustomResourceDefinitions that Pumice needs."""
    typer.echo(manifests.crd_stream(), nl=False)
