"""What the page says when there is nothing, nobody answers, or the reader may not look."""

from __future__ import annotations

import json

import pytest

from tests.ui import samples
from tests.ui.chromium import Tab
from tests.ui.site import Site

EMPTY = {
    "queues": "There are no queues yet.",
    "jobs": "There are no jobs.",
    "map": "There are no nodes yet.",
    "time": "Nothing has started, ended or been evicted in this time, and nothing is planned.",
}


@pytest.mark.parametrize("view", EMPTY)
def test_an_empty_cluster_has_its_own_words(page: Tab, site: Site, view: str) -> None:
    site.whole = samples.whole()
    site.answers["/view/history"] = samples.history()
    page.open(f"{site.url}/ui#/{view}")
    page.shows(EMPTY[view])


def test_a_replica_that_stands_by_says_where_the_leader_is(page: Tab, site: Site) -> None:
    site.whole = samples.whole(role="stands by", notice="pumice-1 leads: ask it.")
    page.open(f"{site.url}/ui#/jobs")
    page.shows("This replica stands by. pumice-1 leads: ask it.")
    page.shows("A replica that stands by knows no jobs.")


def test_a_lost_connection_is_told_and_what_was_known_stays(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("5 jobs", "live")
    site.refusal = (503, "the process stops")
    site.cut()
    page.shows("The connection is lost since", "the process stops", "What is shown is as of")
    page.shows("not connected", "train-1")
    site.refusal = None
    page.click("Try now")
    page.wait("!document.body.innerText.includes('The connection is lost')")
    page.shows("live")


def test_a_server_that_stops_is_asked_again(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("5 jobs")
    site.whole = samples.whole(generation=7, jobs=[samples.job("after")])
    site.tell("stopping", {"why": "the process stops"})
    page.shows("The connection is lost since", "the process stops")
    page.shows("1 job, 0 of them wait")


def test_a_page_that_is_not_looked_at_lets_its_connection_go(page: Tab, site: Site) -> None:
    page.open(f"{site.url}/ui#/jobs")
    page.shows("5 jobs", "live")
    page.value("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true})), 0")
    site.whole = samples.whole(generation=7, jobs=[samples.job("after")])
    page.value("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})), 0")
    page.shows("1 job, 0 of them wait", "live")
    assert len(site.namespaces) == 2
    page.value("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: false})), 0")
    page.value("document.dispatchEvent(new Event('visibilitychange')), 0")
    page.shows("live")
    assert len(site.namespaces) == 2


def sign_in(page: Tab, token: str, namespaces: str = "") -> None:
    page.shows("Bearer token")
    page.choose("Bearer token", token)
    page.choose("Namespaces", namespaces)
    page.click("Show")


def test_signing_in_leads_to_the_view_of_the_link(page: Tab, site: Site) -> None:
    site.token = "secret"
    page.open(f"{site.url}/ui#/jobs/default/train-3")
    page.shows("Sign in", "show a bearer token")
    sign_in(page, "wrong")
    page.shows("This token is not accepted")
    sign_in(page, "secret")
    page.shows("Job train-3", samples.REASON)
    everything = page.value("JSON.stringify([location.href, {...localStorage}])")
    assert "secret" not in everything
    page.click("Sign out")
    page.shows("Sign in")
    assert page.value("sessionStorage.length") == 0


@pytest.mark.parametrize("copied", ["Bearer secret", ' "secret" ', "sec\nret"])
def test_a_token_may_be_pasted_as_it_was_copied(page: Tab, site: Site, copied: str) -> None:
    site.token = "secret"
    page.open(f"{site.url}/ui#/jobs")
    page.shows("Bearer token")
    sign_in(page, copied)
    page.shows("5 jobs")


def test_what_cannot_be_a_token_is_not_sent(page: Tab, site: Site) -> None:
    """A header has no such characters, so the browser would send nothing at all."""
    site.token = "secret"
    page.open(f"{site.url}/ui#/jobs")
    page.shows("Bearer token")
    page.choose("Bearer token", "s…t")
    page.click("Show")
    page.shows("This token is not accepted", "characters that no token has")
    sign_in(page, "secret")
    page.shows("5 jobs")


def test_a_browser_that_keeps_nothing_shows_the_page_too(page: Tab, site: Site) -> None:
    refuse = "get() { throw new DOMException('blocked', 'SecurityError'); }"
    for name in ("localStorage", "sessionStorage"):
        page.send(
            "Page.addScriptToEvaluateOnNewDocument",
            source=f"Object.defineProperty(globalThis, '{name}', {{{refuse}}})",
        )
    site.token = "secret"
    page.open(f"{site.url}/ui#/jobs")
    page.shows("Bearer token")
    sign_in(page, "secret")
    page.shows("5 jobs")
    page.click("Dark")
    page.shows("Light")


def test_an_expired_token_has_its_own_words_and_the_view_comes_back(page: Tab, site: Site) -> None:
    site.token = "first"
    page.open(f"{site.url}/ui#/queues/research")
    sign_in(page, "first")
    page.shows("Queue research")
    site.token = "second"
    site.tell("expired", {"why": "the token is not valid"})
    page.shows("Your token has expired", "the token is not valid")
    assert "Queue research" not in page.text()
    sign_in(page, "second")
    page.shows("Queue research")


def test_a_tenant_names_its_namespaces(page: Tab, site: Site) -> None:
    site.refusal = (403, "name a namespace: ?namespace=a")
    page.open(f"{site.url}/ui#/jobs")
    page.shows("You may not see this", "name a namespace: ?namespace=a")
    site.refusal = None
    site.whole["viewer"] = {"user": "ann", "namespaces": ["team-a", "team-b"]}
    sign_in(page, "", "team-a, team-b")
    page.shows("ann · namespace team-a, team-b")
    assert site.namespaces[-1] == "team-a,team-b"


def test_the_page_keeps_what_is_chosen_of_dark_and_light(page: Tab, site: Site) -> None:
    def back() -> str:
        found: str = page.value("getComputedStyle(document.body).backgroundColor")
        return found

    page.open(f"{site.url}/ui")
    page.shows("Queues", "Dark")
    light = back()
    page.click("Dark")
    page.shows("Light")
    dark = back()
    assert light != dark
    page.open(f"{site.url}/ui")
    page.shows("Light")
    assert back() == dark
    page.look(dark=True)
    page.click("Light")
    page.wait(f"getComputedStyle(document.body).backgroundColor === {json.dumps(light)}")
