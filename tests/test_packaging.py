"""The files around the code agree with the code: image, continuous integration, licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def _copied_paths() -> list[str]:
    lines = re.findall(r"^COPY (?!--from)(.+)$", (_ROOT / "Dockerfile").read_text(), re.M)
    return [source for line in lines for source in line.split()[:-1]]


def test_every_path_that_the_image_copies_exists() -> None:
    assert _copied_paths()
    assert [path for path in _copied_paths() if not (_ROOT / path).exists()] == []


def test_every_path_that_the_image_copies_is_sent_to_the_build() -> None:
    sent = re.findall(r"^!(.+)$", (_ROOT / ".dockerignore").read_text(), re.M)
    assert sorted(_copied_paths()) == sorted(sent)


def test_the_image_is_built_by_the_uv_that_the_makefile_uses() -> None:
    pinned = re.findall(r"^UV_VERSION := (\S+)$", (_ROOT / "Makefile").read_text(), re.M)
    assert re.findall(r"uv==(\S+)", (_ROOT / "Dockerfile").read_text()) == pinned


def test_continuous_integration_runs_the_test_command() -> None:
    script = _ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().splitlines()[-1] == "make test"


def test_the_licence_is_the_declared_one() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert (
        "Apache License\n                           Version 2.0" in (_ROOT / "LICENSE").read_text()
    )
