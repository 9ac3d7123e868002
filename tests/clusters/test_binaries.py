"""Where the control plane's programs come from."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.clusters import binaries


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PUMICE_CONTROLPLANE", raising=False)


def _fake_go(folder: Path, monkeypatch: pytest.MonkeyPatch, *, version: str, ends: int = 0) -> None:
    """A `go` that tells its version and writes its arguments where the program should go."""
    _program(
        folder / "go",
        f'[ "$1" = env ] && {{ echo {version}; exit; }}\n'
        'while [ "$1" != -o ]; do shift; done\n'
        f'echo "$3" > "$2"; exit {ends}',
    )
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_a_given_folder_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CONTROLPLANE", "/given")
    assert binaries.folder() == Path("/given")


def test_the_version_is_that_of_go_mod() -> None:
    assert re.fullmatch(r"v1\.\d+\.\d+", binaries.kubernetes_version())


def test_a_missing_folder_is_compiled_once_and_only_its_path_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _fake_go(tmp_path / "bin", monkeypatch, version="go1.26.1")
    binaries.main()
    first = capsys.readouterr()
    folder = Path(first.out.rstrip("\n"))
    assert folder.parent == tmp_path / "cache"
    assert {each.name for each in folder.iterdir()} == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    }
    assert "kube-scheduler (3 of 4)" in first.err
    binaries.main()
    second = capsys.readouterr()
    assert (second.out, second.err) == (first.out, "")


def test_a_build_that_fails_leaves_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_go(tmp_path / "bin", monkeypatch, version="go1.27.0", ends=1)
    with pytest.raises(Exception, match="returned non-zero exit status 1"):
        binaries.folder()
    assert [each.name for each in (tmp_path / "cache").iterdir()] == ["controlplane.lock"]


def test_go_that_is_too_old_is_passed_over_for_the_one_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _fake_go(tmp_path / "cache" / "go" / "bin", monkeypatch, version="go1.26.9")
    _fake_go(tmp_path / "bin", monkeypatch, version="go1.25.3")
    binaries.folder()
    assert "with go1.26.9" in capsys.readouterr().err
