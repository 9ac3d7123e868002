"""A browser for the tests of a worker, and a new tab with a site for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui import samples
from tests.ui.chromium import MISSING, PROGRAM, Tab, Wire, browser, tab
from tests.ui.site import Site, serving

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="package")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A browser that ends with these tests: its connection has a thread that rolls dice."""
    if not PROGRAM:
        pytest.skip(MISSING)
    with browser(tmp_path_factory.mktemp("chromium")) as wire:
        yield wire


@pytest.fixture
def page(chromium: Wire) -> Iterator[Tab]:
    """A tab; what no code of the page has caught fails the test."""
    with tab(chromium) as made:
        yield made
        assert not [each for each in made.complaints if "Error" in each], made.complaints


@pytest.fixture
def site() -> Iterator[Site]:
    """A busy cluster, in memory."""
    whole = samples.busy()
    made = Site(whole, answers={"/view/history": samples.busy_history()})
    for job in whole["jobs"]:
        made.answers[f"/view/jobs/{job['namespace']}/{job['name']}"] = samples.story(job)
    with serving(made):
        yield made


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where pictures of the views are kept."""
    return Path(os.environ.get("PUMICE_PICTURES") or ROOT / ".cache" / "pictures")
