"""What is new comes with a file of its own, of which the changelog is made."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.clusters.installation import ROOT

FOLDER: Final = ROOT / "changes"
NAME: Final = re.compile(r"[a-z0-9-]+\.(added|changed|fixed|security)\.md")


def fragments() -> list[Path]:
    return [path for path in sorted(FOLDER.iterdir()) if path.name != "README.md"]


def test_each_change_is_named_after_its_kind_and_says_what_a_user_sees() -> None:
    for path in fragments():
        assert NAME.fullmatch(path.name), path.name
        text = path.read_text(encoding="utf-8").strip()
        assert text.endswith("."), path.name
        assert len(re.findall(r"[.!?](?:\s|$)", text)) <= 3, path.name


def test_a_release_makes_the_changelog_of_them(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md", "changes"):
        there = ROOT / name
        copy = shutil.copytree if there.is_dir() else shutil.copy
        copy(there, tmp_path / name)
    (tmp_path / "changes" / "eta.added.md").write_text("A job says when it will run.\n")
    program = str(Path(sys.executable).with_name("towncrier"))
    build = [program, "build", "--yes", "--version", "9.9.9"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    text = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    new, old = text.index("## 9.9.9"), text.index("## 0.1.0")
    assert "- A job says when it will run." in text[new:old]
    assert not (tmp_path / "changes" / "eta.added.md").exists()
    assert (tmp_path / "changes" / "README.md").exists()
