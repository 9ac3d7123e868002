"""axe-core, which finds what keeps people from reading a page: fetched once into the cache."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import tempfile
import urllib.request
from functools import cache
from pathlib import Path

from app.sandbox.controlplane.programs import cache_root
from tests.ui.chromium import Tab

VERSION = "4.14.1"
_ADDRESS = f"https://registry.npmjs.org/axe-core/-/axe-core-{VERSION}.tgz"
_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_FILE = "package/axe.min.js"
_FETCH_S = 30
_SERIOUS = ("serious", "critical")


class AxeMissing(Exception):
    """axe-core is not in the cache and could not be fetched; the text says why."""


@cache
def source() -> str:
    """The script. Raises AxeMissing where the registry is not reached."""
    kept = cache_root() / f"axe-core-{VERSION}.min.js"
    if not kept.exists():
        _fetch(kept)
    return kept.read_text()


def _fetch(to: Path) -> None:
    try:
        with urllib.request.urlopen(_ADDRESS, timeout=_FETCH_S) as answer:
            packed = answer.read()
    except OSError as error:
        raise AxeMissing(f"axe-core is not in {to.parent}, and {_ADDRESS}: {error}") from error
    if base64.b64encode(hashlib.sha512(packed).digest()).decode() != _SHA512:
        raise AxeMissing(f"{_ADDRESS} is not the package that it was")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        member = archive.extractfile(_FILE)
        assert member is not None
        text = member.read()
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=to.parent, delete=False) as part:
        part.write(text)
    os.replace(part.name, to)


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
