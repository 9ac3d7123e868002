"""All views for all readers: dark and light, on a phone, by keyboard, and by axe-core's rules.

`make proofs` looks at every view in each way and keeps pictures; `make test` takes turns.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.scale import FULL
from tests.ui import axe, samples
from tests.ui.chromium import Tab
from tests.ui.site import Site

VIEWS = {
    "queues": "8 of 20 deserved",
    "queues/research": "Its jobs",
    "jobs?group=queue": "Group by",
    "jobs/default/train-1": "Members (3)",
    "jobs/default/train-3": "Why it waits",
    "map?by=job&node=node-3": "Node node-3",
    "map?table=1": "spine-1 / rack-2",
    "time": "What happened",
    "try?queue=research": "Another limit of a queue",
}
SIZES = {"light": (1280, 900), "dark": (1280, 900), "phone": (360, 740)}
ALL_WAYS = [(view, look) for look in SIZES for view in VIEWS]
LOOKED_AT = ALL_WAYS if FULL else ALL_WAYS[::4]
NARROWEST = 320


def shown(page: Tab, site: Site, view: str, *, look: str = "light") -> None:
    width, height = SIZES[look]
    page.look(width=width, height=height, dark=look == "dark")
    page.open(f"{site.url}/ui#/{view}")
    page.shows(VIEWS[view])


@pytest.fixture
def axe_core() -> None:
    try:
        axe.source()
    except axe.AxeMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.usefixtures("axe_core")
@pytest.mark.parametrize("way", LOOKED_AT, ids="-".join)
def test_axe_finds_nothing_serious(
    page: Tab, site: Site, pictures: Path, way: tuple[str, str]
) -> None:
    view, look = way
    shown(page, site, view, look=look)
    page.picture(pictures / f"{re.sub(r'[^a-z0-9-]+', '-', view)}-{look}.png")
    assert axe.findings(page) == []


@pytest.mark.usefixtures("axe_core")
def test_axe_finds_what_is_wrong(page: Tab, site: Site) -> None:
    """Else the tests above could not fail."""
    shown(page, site, "queues")
    page.value("document.body.append(document.createElement('button'))")
    assert [each.split(":")[0] for each in axe.findings(page)] == ["button-name"]


@pytest.mark.parametrize("view", VIEWS if FULL else list(VIEWS)[::3])
def test_the_narrowest_phone_scrolls_in_one_direction(page: Tab, site: Site, view: str) -> None:
    page.look(width=NARROWEST, height=568)
    page.open(f"{site.url}/ui#/{view}")
    page.shows(VIEWS[view])
    assert page.value("document.documentElement.scrollWidth") <= NARROWEST


@pytest.mark.parametrize("view", ["queues", "jobs", "map?by=queue", "time", "try?queue=research"])
def test_the_longest_names_fit_on_the_narrowest_phone(page: Tab, site: Site, view: str) -> None:
    site.whole["queues"] += deep_queues()
    last = site.whole["queues"][-1]["name"]
    site.whole["jobs"].append(samples.job("j" * 63, namespace="n" * 63, queue=last))
    held = samples.holds(site.whole["jobs"][-1]["key"], last, 1, 1)
    site.whole["nodes"].append(samples.node("x" * 253, held, path=["r" * 63]))
    page.look(width=NARROWEST, height=568)
    page.open(f"{site.url}/ui#/{view}")
    page.wait("document.querySelector('h1')")
    page.wait("document.readyState === 'complete'")
    assert page.value("document.documentElement.scrollWidth") <= NARROWEST


def deep_queues() -> list[dict[str, object]]:
    """Ten queues one below the other, with the longest names that there are."""
    names = ["root", *(f"{number}-{'q' * 251}" for number in range(10))]
    return [samples.queue(name, parent=parent) for parent, name in pairwise(names)]


def focused(page: Tab) -> str:
    """The text or label of what the keyboard is on."""
    found: str = page.value(
        "(it => it.labels?.[0]?.textContent.trim() || it.getAttribute('aria-label')"
        " || it.textContent.trim())(document.activeElement)"
    )
    return found


def tab_to(page: Tab, wanted: str) -> None:
    """Press Tab until the keyboard is on what begins with a text."""
    seen = []
    for _ in range(60):
        page.press("Tab")
        seen.append(focused(page))
        if seen[-1].startswith(wanted):
            return
    raise AssertionError(f"no {wanted} in {seen}")


def test_all_views_are_reached_by_keyboard_alone(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui")
    page.shows("Last hour")
    page.press("Tab")
    assert focused(page) == "Skip to the content"
    page.press("Enter")
    assert page.value("document.activeElement.id") == "content"
    for name, text in {
        "Jobs": "Group by",
        "Cluster map": "Colour by",
        "Time axis": "To come",
        "What if": "Another limit of a queue",
        "Queues": "Last hour",
    }.items():
        page.value("document.activeElement.blur(); document.getElementById('skip').focus()")
        tab_to(page, name)
        page.press("Enter")
        page.shows(text)
        assert page.value("document.activeElement.id") == "content"


def test_a_story_is_opened_and_asked_by_keyboard(page: Tab, site: Site) -> None:
    site.answers["/line/default/train-3-uid"] = {
        "queue": "research",
        "position": 1,
        "waiting": 2,
        "itself": {"group": "default/train-3-uid", "columns": []},
        "ahead": [],
        "decided_by": "",
    }
    page.open(f"{site.url}/ui#/jobs")
    page.shows("train-3")
    tab_to(page, "train-3")
    page.press("Enter")
    page.shows("Why it waits")
    tab_to(page, "Who is ahead")
    page.press("Enter")
    page.shows("Place 1 of 2 in queue research. It is the first.")


def test_a_limit_is_moved_by_keyboard(page: Tab, site: Site) -> None:
    site.answers["/simulate"] = {
        "outcome": "runs",
        "asked": [],
        "displaced": [],
        "others": [],
        "given_up": [],
        "warnings": [],
    }
    page.open(f"{site.url}/ui#/try?queue=research")
    page.shows("Limit: 40 cpu (as it is)")
    tab_to(page, "Limit")
    page.press("ArrowLeft")
    page.shows(
        "Limit: 39.5 cpu, now 40", "No group that waits, or loses pods, would fare otherwise."
    )
    assert focused(page).startswith("Limit")


def test_the_focus_stays_where_it_is_when_rows_move(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("train-1")
    tab_to(page, "train-1")
    site.change(jobs=[samples.waiting("train-1", "moved to the top", place=None)])
    page.shows("moved to the top")
    assert focused(page) == "train-1"


def test_what_has_the_focus_can_be_seen(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("train-1")
    tab_to(page, "train-1")
    width = page.value("getComputedStyle(document.activeElement).outlineWidth")
    assert float(width.removesuffix("px")) >= 2
