"""``pumice simulate``: what would happen, as a page, as values, and as an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.stand import Stand, answering, job

VICTIM = {
    "pod": "default/low-0",
    "node": "n1",
    "group": "default/low",
    "queue": "a",
    "rule": "priority",
}


def fate(outcome: str, **more: Any) -> dict[str, Any]:
    return {
        "group": "default/j",
        "queue": "a",
        "outcome": outcome,
        "before": "",
        "minimum": 2,
        "places": [],
        "reason": None,
        "text": "",
        "action": "",
        "victims": [],
        **more,
    }


def answer(**more: Any) -> bytes:
    parts = ("asked", "displaced", "others", "given_up", "warnings")
    nothing: dict[str, Any] = {part: [] for part in parts}
    return json.dumps({"outcome": "runs", **nothing, **more}).encode()


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job("j")))
    return str(path)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("runs", (0, "runs now")),
        ("evicts", (0, "runs once pods have been evicted")),
        ("waits", (4, "waits")),
        ("never", (5, "never runs as it is")),
    ],
)
def test_the_exit_code_tells_the_outcome(
    stand: Stand, manifest: str, outcome: str, told: tuple[int, str]
) -> None:
    code, said = told
    found = answer(outcome=outcome, asked=[fate(outcome, text="cpu: asked 4, free 2")])
    with answering(found) as (url, asked):
        done = stand.run("simulate", "-f", manifest, "--extender-url", url)
    assert (done.code, done.err) == (code, "")
    assert done.out.startswith(f"default/j in queue a: {said}\n")
    [question] = asked
    path, _, body = question.partition(" ")
    assert path == "/simulate"
    assert json.loads(body)["manifests"] == [job("j")]


def test_the_time_of_the_start_is_told_after_the_reason(stand: Stand, manifest: str) -> None:
    told = fate("waits", text="cpu: asked 4", eta={"text": "It starts in 20s on n0."})
    with answering(answer(outcome="waits", asked=[told])) as (url, _):
        done = stand.run("simulate", "-f", manifest, "--extender-url", url)
    assert done.out.splitlines()[1:] == ["  cpu: asked 4", "  It starts in 20s on n0."]


def test_places_and_victims_are_told_with_counts(stand: Stand, manifest: str) -> None:
    places = [{"pod": f"default/j-{n}", "role": "w", "node": "n1"} for n in range(3)]
    told = fate("evicts", places=places, victims=[VICTIM], action="preempt")
    with answering(answer(outcome="evicts", asked=[told], warnings=["spec: hm"])) as (url, _):
        lines = stand.printed("simulate", "-f", manifest, "--extender-url", url).splitlines()
    assert lines[0] == "Warning: spec: hm"
    assert "  preempt evicts 1 pod:" in lines
    assert "    default/low-0   n1     a       priority" in lines
    assert "  3 places:" in lines
    assert "    n1     w      3" in lines


def test_changes_go_with_the_question(stand: Stand, tmp_path: Path) -> None:
    conf = tmp_path / "other.conf"
    conf.write_text("actions: allocate")
    other = fate("runs", before="waits")
    with answering(answer(others=[other])) as (url, asked):
        changes = ["--set", "queue/a.capability.cpu=200", "--drain", "n1", "--conf", str(conf)]
        text = stand.printed("simulate", *changes, "--extender-url", url)
    assert text == "default/j in queue a: runs now, it waits without that\n"
    question = json.loads(asked[0].partition(" ")[2])
    assert question["set"] == {"queue/a.capability.cpu": "200"}
    assert (question["drain"], question["conf"]) == (["n1"], "actions: allocate")


def test_programs_get_the_answer_as_it_is(stand: Stand, manifest: str) -> None:
    told = answer(asked=[fate("runs")])
    with answering(told) as (url, _):
        text = stand.printed("simulate", "-f", manifest, "--extender-url", url, "-o", "json")
    assert json.loads(text) == json.loads(told)


def test_what_cannot_be_asked_says_why(stand: Stand, manifest: str, tmp_path: Path) -> None:
    here = ["--extender-url", "http://127.0.0.1:1"]
    assert stand.refusal("simulate", *here)[0] == 2
    assert stand.refusal("simulate", "-f", manifest) == (
        2,
        "Failed to simulate: say where the extender answers: --extender-url or "
        "PUMICE_EXTENDER_URL\n",
    )
    assert (
        "write queue/NAME.capability.cpu=200" in stand.refusal("simulate", "--set", "a", *here)[1]
    )
    missing = str(tmp_path / "none.conf")
    assert "No such file" in stand.refusal("simulate", "--conf", missing, *here)[1]
    code, why = stand.refusal("simulate", "-f", manifest, *here)
    assert (code, "does not tell" in why) == (6, True)
    with answering(b"no queue a is known\n", status=404) as (url, _):
        code, why = stand.refusal("simulate", "--set", "queue/a.weight=2", "--extender-url", url)
    assert (code, why) == (3, "Failed to simulate: no queue a is known\n")
