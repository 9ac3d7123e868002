"""`pumice crds` prints all kinds as one stream."""

from __future__ import annotations

import typer
import yaml
from typer.testing import CliRunner

from app.cli.crds import crds
from app.wire import manifests


def test_all_kinds_are_printed_as_one_stream() -> None:
    app = typer.Typer()
    app.command("crds")(crds)

    result = CliRunner().invoke(app)

    assert result.exit_code == 0
    assert list(yaml.safe_load_all(result.stdout)) == manifests.crd_documents()
