"""extender: the example, with the server that is part of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.clusters import workloads
from tests.clusters.installation import ROOT
from tests.clusters.place import Place
from tests.clusters.ports import free_port
from tests.clusters.processes import wait_until

EXAMPLE: Final = ROOT / "examples" / "extender"
DOCUMENT: Final = ROOT / "docs" / "extender-plugin.md"
CERTIFIED: Final = {"metadata": {"labels": {"example.com/certified": "true"}}}
_WAIT_S: Final = 30.0


class Judge:
    """The server, in a process of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self._told = folder / "told"
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Answer from now on."""
        with self._told.open("ab") as told:
            command = [sys.executable, str(EXAMPLE / "judge.py"), str(self._port)]
            self._process = subprocess.Popen(command, stdout=told)

    def end(self) -> None:
        """Answer no more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def told(self) -> list[str]:
        """Pods and nodes that it was told of."""
        return self._told.read_text().splitlines()


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def scheduler_conf(port: int) -> str:
    """The configuration of the example, which asks our server."""
    document = yaml.safe_load((EXAMPLE / "judged.conf").read_text())
    [plugin] = [p for t in document["tiers"] for p in t["plugins"] if p["name"] == "extender"]
    plugin["arguments"]["extender.urlPrefix"] = f"http://127.0.0.1:{port}"
    return yaml.safe_dump(document)


@pytest.fixture
def judge(tmp_path: Path, port: int) -> Iterator[Judge]:
    server = Judge(tmp_path, port)
    server.begin()
    yield server
    server.end()


def test_the_document_shows_the_configuration_of_the_example() -> None:
    shown = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert shown is not None
    example = yaml.safe_load((EXAMPLE / "judged.conf").read_text())
    assert yaml.safe_load(shown[1]) == example


def test_a_gang_waits_until_the_server_allows_nodes_and_is_bound_there(
    place: Place, judge: Judge
) -> None:
    plain, certified = place.add_nodes(2, cpu="8")
    place.add_gang("judged", 2)
    place.wait_summary("judged", "not certified (2)")
    place.wait_condition("judged", "Reserved", "False", says="not certified")
    assert "HttpExtender" in str(place.condition("judged", "Reserved"))

    place.change_node(certified, CERTIFIED)
    place.wait_bound("judged", 2)
    assert {workloads.node_of(pod) for pod in place.bound("judged")} == {certified}
    wait_until(
        lambda: {f"judged-{n} {certified}" for n in range(2)} <= set(judge.told()),
        timeout_s=_WAIT_S,
        what="places told",
    )
    assert plain not in {node for _, node in map(str.split, judge.told())}


def test_members_go_to_the_nodes_that_the_server_likes(place: Place, judge: Judge) -> None:
    full, empty = place.add_nodes(2, cpu="8", labels={"example.com/certified": "true"})
    for number in range(3):
        place.submit_one(workloads.pod(f"there-{number}", pin=full))
        assert place.wait_pod_bound(f"there-{number}") == full
    place.add_gang("judged", 2)
    place.wait_bound("judged", 2)
    assert {workloads.node_of(pod) for pod in place.bound("judged")} == {empty}


def test_a_server_that_is_away_keeps_gangs_waiting_and_says_so(place: Place, judge: Judge) -> None:
    place.add_nodes(1, cpu="8", labels={"example.com/certified": "true"})
    judge.end()
    place.add_gang("judged", 2)
    place.wait_summary("judged", "the HTTP extender at http://127.0.0.1:")
    wait_until(
        lambda: "does not answer http" in place.cluster.extender.text("/readyz"),
        timeout_s=_WAIT_S,
        what="a notice",
    )
    judge.begin()
    place.wait_bound("judged", 2)


def test_a_pod_that_the_server_keeps_is_not_evicted_and_another_is(
    place: Place, judge: Judge
) -> None:
    high = place.add_priority_class("high", 100)
    place.add_nodes(1, cpu="2", labels={"example.com/certified": "true"})
    place.add_group("low", 1)
    kept, other = workloads.members("low", 2)
    kept["metadata"].setdefault("labels", {})["example.com/keep"] = "true"
    place.submit([kept, other])
    place.wait_bound("low", 2)
    place.add_gang("high", 1, rank=high)
    place.wait_bound("high", 1)
    assert [pod["metadata"]["name"] for pod in place.bound("low")] == [kept["metadata"]["name"]]
    assert judge.told()
