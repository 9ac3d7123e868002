"""What was decided is told after its objects are gone, and decided again from one file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli.certificates import check
from tests.clusters.embedded import Embedded
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.pumice import COMMAND
from tests.clusters.rig import Rig, Setting, Stage
from tests.scenarios.confs import evicting


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    """With preempt, so that there are victims."""
    return evicting("enqueue, allocate, preempt, backfill")


@pytest.fixture(scope="module")
def embedded(conf_file: Path) -> Iterator[Embedded]:
    """A sandbox of this module's own: all that was decided there is written down."""
    with Embedded(conf_file.parent, conf=conf_file) as running:
        yield running


@pytest.fixture
def rig(stage: Stage, conf_file: Path) -> Rig:
    return stage.rig(Setting(conf=conf_file))


def told(place: Place, *arguments: str, code: int = 0) -> str:
    """What a command says of the cluster of ``place``."""
    url = f"--extender-url={place.cluster.extender.url}"
    command = [str(COMMAND), *arguments]
    if arguments[0] != "replay":
        command.append(url)
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_an_eviction_is_told_after_its_objects_are_gone_and_decided_again(
    place: Place, tmp_path: Path
) -> None:
    low, high = (place.add_priority_class(name, value) for name, value in (("l", 1), ("h", 9)))
    [node] = place.add_nodes(1, cpu="2")
    place.add_gang("low", 2, minimum=1, rank=low)
    place.wait_bound("low", 2)
    place.add_gang("high", 1, rank=high)
    place.wait_bound("high", 1)
    kept = {pod["metadata"]["name"] for pod in place.bound("low")}
    [victim] = {"low-0", "low-1"} - kept
    for gang in ("low", "high"):
        place.delete_gang(gang)
    place.wait_gone()
    wait_until(
        lambda: f"{place.name}/high" not in place.cluster.extender.get("/debug/gangs"),
        timeout_s=20,
        what="that the groups are gone",
    )

    where = f"--namespace={place.name}"
    found = json.loads(told(place, "why-evicted", victim, where, "-o=json"))
    causes = [each["cause"] for each in found["decisions"]]
    assert causes == ["decided", "evicted"]
    for each in found["decisions"]:
        assert (each["preemptor"], each["rule"]) == (f"{place.name}/high", "priority")
        assert (each["group"], each["node"]) == (f"{place.name}/low", node)
        assert each["generation"] > 0
    assert check(found["certificate"]) == []

    trail: list[dict[str, Any]] = json.loads(told(place, "audit", "high", where, "-o=json"))[
        "decisions"
    ]
    kinds = {(each["kind"], each["pod"]) for each in trail}
    assert {("place", "high-0"), ("evict", victim)} <= kinds
    lines = told(place, "audit", "low", where, "-o=ndjson").splitlines()
    assert {json.loads(line)["group"] for line in lines} >= {f"{place.name}/low"}

    file, redacted = str(tmp_path / "case.pumice"), str(tmp_path / "redacted.pumice")
    told(place, "record", "-f", file)
    told(place, "record", "-f", redacted, "--redact")
    for case in (file, redacted):
        again = json.loads(told(place, "replay", case, "-o=json"))["decisions"]
        assert again
        assert [each for each in again if not each["same"]] == []
