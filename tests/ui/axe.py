"""axe-core, which finds what keeps people from reading a page: fetched once into the cache."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from app.sandbox.controlplane.programs import cache_root
from tests.ui.chromium import Tab

VERSION = "4.14.1"
_PACKAGE = f"axe-core@{VERSION}"
_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_FILE = "package/axe.min.js"
_FETCH_S = 60
_SERIOUS = ("serious", "critical")


class AxeMissing(Exception):
    """axe-core is not in the cache and could not be fetched; the text says why."""


@cache
def source() -> str:
    """The script. Raises AxeMissing where npm cannot get it."""
    kept = cache_root() / f"axe-core-{VERSION}.min.js"
    if not kept.exists():
        _fetch(kept)
    return kept.read_text()


def _fetch(to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        packed = _packed(Path(folder))
        if base64.b64encode(hashlib.sha512(packed).digest()).decode() != _SHA512:
            raise AxeMissing(f"the npm package {_PACKAGE} is not what it was")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            member = archive.extractfile(_FILE)
            assert member is not None
            part = Path(folder) / to.name
            part.write_bytes(member.read())
        os.replace(part, to)


def _packed(folder: Path) -> bytes:
    """The package as npm has it, from the registry that npm is set up with here."""
    npm = shutil.which("npm")
    if npm is None:
        raise AxeMissing(f"axe-core is not in {cache_root()}, and npm is not installed")
    asked = [npm, "pack", _PACKAGE, "--silent", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(
            asked, cwd=folder, capture_output=True, text=True, timeout=_FETCH_S, check=True
        )
    except subprocess.CalledProcessError as error:
        raise AxeMissing(f"`{' '.join(asked)}`: {error.stderr.strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AxeMissing(f"`{' '.join(asked)}`: {error}") from error
    return (folder / done.stdout.split()[-1]).read_bytes()


def findings(tab: Tab) -> list[str]:
    """What is serious or critical on the page as it is, with the elements."""
    if not tab.value("'axe' in globalThis"):
        tab.value(f"{source()};0")
    found = json.loads(tab.value("axe.run().then(it => JSON.stringify(it.violations))"))
    return [
        f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes']]}"
        for each in found
        if each["impact"] in _SERIOUS
    ]
