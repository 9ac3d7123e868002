"""The page of `pumice sandbox`: what it shows of jobs that are there, as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.clusters import workloads
from tests.clusters.client import ApiClient
from tests.sandbox.started import Started, started
from tests.ui.chromium import MISSING, PROGRAM, Tab

pytestmark = pytest.mark.sandbox
FULL_MS = 50_000
"""About so long a browser waits for a connection when those that it may have are taken."""


def job(name: str, *, replicas: int = 2, cpu: str = "1", queue: str = "team") -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "w", "replicas": replicas, "template": template}
    more = {"schedulerName": "volcano", "minAvailable": replicas, "queue": queue}
    made = workloads.job(name, {**more, "tasks": [task]})
    made["metadata"]["namespace"] = "default"
    return made


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    if not PROGRAM:
        pytest.skip(MISSING)
    with started(tmp_path_factory.mktemp("sandbox") / "log", "--nodes=6", "--racks=2") as made:
        with ApiClient(made.said("API server")) as api:
            api.create(workloads.queue("team", capability={"cpu": "6"}))
            api.create(job("runs"))
            api.create(job("waits", replicas=5))
        yield made


@pytest.fixture
def address(sandbox: Started) -> str:
    return sandbox.said("page")


def test_the_sandbox_says_where_its_page_is_and_it_is_open(page: Tab, address: str) -> None:
    page.open(address)
    page.shows("Queues", "live", "team", "asks for", "limit 6")


def test_a_page_that_is_left_again_and_again_takes_no_connections(page: Tab, address: str) -> None:
    for view in ("queues", "jobs", "map", "time", "try", "queues", "jobs", "map"):
        page.open(f"{address}#/{view}")
        waited_ms = page.value(
            "(it => it.responseStart - it.fetchStart)"
            "(performance.getEntriesByType('navigation')[0])"
        )
        assert waited_ms < FULL_MS / 2
    page.shows("6 nodes", "live")


def test_jobs_are_shown_as_they_are(page: Tab, address: str) -> None:
    page.open(f"{address}#/jobs")
    page.shows("runs", "2 of 2 run", "waits", "cpu asked 5, free 4 of 6; held by")
    page.wait("[...document.querySelectorAll('.reason a')].some(it => it.textContent === 'runs')")


def test_a_job_appears_without_a_reload(page: Tab, address: str, sandbox: Started) -> None:
    page.open(f"{address}#/jobs")
    page.shows("2 of 2 run")
    with ApiClient(sandbox.said("API server")) as api:
        api.create(job("later", replicas=1))
    page.shows("later", "1 of 1 run")


def test_the_map_has_the_racks_and_nodes(page: Tab, address: str) -> None:
    page.open(f"{address}#/map?by=queue&node=node-00000")
    page.shows("6 nodes", "Node node-00000", "rack-0", "What the free room is worth")


def test_a_pasted_job_is_tried(page: Tab, address: str) -> None:
    page.open(f"{address}#/try")
    page.choose("YAML", yaml.safe_dump(job("small", replicas=1, queue="default")))
    page.click("Ask")
    page.shows("What you ask about", "runs now", "Places: 1 on node-")
    page.choose("YAML", yaml.safe_dump(job("wide", replicas=1, cpu="64")))
    page.click("Ask")
    page.shows("never runs as it is")
    page.choose("YAML", "spec: [")
    page.click("Ask")
    page.shows("yaml: not YAML: line 1, column 8")


def test_another_limit_lets_the_job_run(page: Tab, address: str) -> None:
    page.open(f"{address}#/try?queue=team")
    page.shows("Limit: 6 cpu (as it is)")
    page.choose("Limit", "20000")
    page.shows("Groups that fare otherwise", "now it waits", "runs now")


def test_the_story_of_a_job_that_runs_has_all_its_stages(page: Tab, address: str) -> None:
    page.open(f"{address}#/jobs/default/runs")
    page.shows("Members (2)", "runs-w-0", "node-0000")
    assert page.text("li[aria-current=step]").startswith("Running")
    assert "time not known" not in page.text(".stages")


def test_the_story_of_a_job_that_waits_tells_why_and_what_would_help(
    page: Tab, address: str
) -> None:
    page.open(f"{address}#/jobs/default/waits")
    page.shows("Why it waits", "of 6; held by")
    for question, answer in {
        "How nodes narrow down": "How nodes narrow down",
        "Who is ahead in the queue": "in queue team",
        "Find a change that would let it run": "It would run now if you",
    }.items():
        page.click(question)
        page.wait(
            "[...document.querySelectorAll('.answer')]"
            f".some(it => it.innerText.includes({json.dumps(answer)}))"
        )


def test_the_time_axis_has_the_start(page: Tab, address: str) -> None:
    page.open(f"{address}#/time")
    page.shows("▲ started (2 pods)", within_s=30)
