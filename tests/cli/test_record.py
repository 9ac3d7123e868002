"""``pumice record`` and ``pumice replay``: one file, decided again."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.planner import plan
from app.model.plan import Plan
from app.model.recorded import PlanCall, Recorded, Recording
from app.wire.stored import packed
from tests.builders import make_queue
from tests.cli.stand import Stand, answering
from tests.core.actions.rigs import policies
from tests.core.crowds import Crowd, Job, boards

NOW = 1_700_000_000.0
OTHER = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
"""


def recording(*, count: int = 2, forgotten: int = 0) -> Recording:
    """Two queues of equal weight that ask for all of a cluster of four cores."""
    jobs = [Job(f"{queue}{number}", 1, queue=queue) for number in range(4) for queue in "ab"]
    by = policies((("gang",), ("predicates", "proportion")))
    crowd = Crowd(jobs, boards(4), by, queues=(make_queue("a"), make_queue("b")))
    snapshot = crowd.snapshot()
    entry = Recorded(
        PlanCall.CYCLE, NOW, snapshot, by.conf, plan(snapshot, by, now=NOW, shapes=None)
    )
    return Recording("0.9", (entry,) * count, forgotten)


@pytest.fixture
def case(tmp_path: Path) -> str:
    path = tmp_path / "case.pumice"
    path.write_bytes(packed(recording()))
    return str(path)


def test_a_recording_is_written_as_it_comes(stand: Stand, tmp_path: Path) -> None:
    content, file = packed(recording(forgotten=3)), tmp_path / "there.pumice"
    with answering(content) as (url, asked):
        text = stand.printed("record", "-f", str(file), "--extender-url", url)
    assert asked == ["/record"]
    assert file.read_bytes() == content
    assert text == (
        f"{file}: 2 decisions from 2023-11-14T22:13:20Z to 2023-11-14T22:13:20Z, "
        f"{len(content)} bytes, 3 older ones had no room\n"
    )


def test_a_recording_without_decisions_says_so(stand: Stand, tmp_path: Path) -> None:
    file = str(tmp_path / "there.pumice")
    with answering(packed(Recording("1", ()))) as (url, _):
        text = stand.printed("record", "-f", file, "--extender-url", url)
    assert "no decisions: the extender was asked for none, or does not lead" in text


def test_what_cannot_be_recorded_says_why(stand: Stand, tmp_path: Path) -> None:
    there = str(tmp_path / "there.pumice")
    with answering(b"something else") as (url, _):
        done = stand.refusal("record", "-f", there, "--extender-url", url)
    assert done == (2, f"Failed to record: {there}: not a file of pumice record\n")
    nowhere = str(tmp_path / "no" / "where")
    with answering(packed(recording())) as (url, _):
        code, why = stand.refusal("record", "-f", nowhere, "--extender-url", url)
    assert (code, "No such file" in why) == (2, True)
    with answering(b"another such file is being made\n", status=429) as (url, _):
        code, why = stand.refusal("record", "-f", there, "--extender-url", url)
    assert (code, "another such file is being made" in why) == (5, True)


def test_recorded_decisions_are_the_same(stand: Stand, case: str) -> None:
    text = stand.printed("replay", case)
    assert text == f"{case}: recorded by pumice 0.9\n2 decisions, 2 are the same\n"
    assert "1 decisions, 1 are the same" in stand.printed("replay", case, "--until", "1")


def test_another_weight_of_a_queue_prints_the_difference(stand: Stand, case: str) -> None:
    done = stand.run("replay", case, "--set", "queue/b.weight=3", "--until", "1")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[1:] == [
        "1 decisions, 0 are the same",
        "1 (2023-11-14T22:13:20Z, cycle, snapshot 1):",
        "  default/a1: waits: QueueOverused; before: is placed on n0",
        "  default/b2: is placed on n0; before: waits: QueueOverused",
    ]


def test_another_configuration_prints_the_difference(
    stand: Stand, case: str, tmp_path: Path
) -> None:
    conf = tmp_path / "other.conf"
    conf.write_text(OTHER)
    done = stand.run("replay", case, "--conf", str(conf), "-o", "json")
    assert done.code == 1
    told = json.loads(done.out)
    assert (told["version"], told["redacted"]) == ("0.9", False)
    [first, _] = told["decisions"]
    assert (first["number"], first["call"], first["same"]) == (1, "cycle", False)
    assert {each["group"] for each in first["differences"]}


def test_a_configuration_that_evicts_is_told_to_be_asked_without(
    stand: Stand, case: str, tmp_path: Path
) -> None:
    conf = tmp_path / "other.conf"
    conf.write_text(OTHER.replace("allocate", "allocate, preempt"))
    out = stand.run("replay", case, "--conf", str(conf)).out
    assert "Warning: what would have been evicted is not told" in out


def test_what_cannot_be_replayed_says_why(stand: Stand, case: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"text")
    assert stand.refusal("replay", str(other)) == (
        2,
        f"Failed to replay {other}: {other}: not a file of pumice record\n",
    )
    missing = str(tmp_path / "none")
    assert "No such file" in stand.refusal("replay", missing)[1]
    other.write_bytes(packed((1, 2)))
    assert "not a file of pumice record" in stand.refusal("replay", str(other))[1]
    for change, why in (
        ("queue/none.weight=2", "no queue none is known"),
        ("queue/a.weight", "write queue/NAME.weight=2"),
        ("queue/a.weight=0", "write queue/NAME.capability.cpu=8"),
        ("queue/a.capability.none/such=1", "no node has none/such"),
    ):
        code, text = stand.refusal("replay", case, "--set", change)
        assert (code, why in text) == (2, True), text
    other.write_text("actions: nothing-such")
    assert stand.refusal("replay", case, "--conf", str(other))[0] == 2


def test_a_redacted_recording_has_other_names_and_the_same_decisions(
    stand: Stand, tmp_path: Path
) -> None:
    file = str(tmp_path / "case.pumice")
    with answering(packed(recording())) as (url, _):
        text = stand.printed("record", "-f", file, "--redact", "--extender-url", url)
    assert text.endswith("bytes, names are replaced\n")
    assert stand.printed("replay", file).endswith("2 decisions, 2 are the same\n")
    told = json.loads(stand.printed("replay", file, "-o", "json"))
    assert told["redacted"] is True
    content = zlib.decompress(Path(file).read_bytes().partition(b"\n")[2])
    assert b"default/a1" not in content
    assert b"default/a1" in zlib.decompress(packed(recording()).partition(b"\n")[2])


def test_a_case_that_would_be_decided_otherwise_under_other_names_is_not_written(
    stand: Stand, tmp_path: Path
) -> None:
    file = tmp_path / "case.pumice"
    case = recording(count=1)
    [entry] = case.entries
    wrong = replace(case, entries=(replace(entry, plan=Plan(1)),))
    with answering(packed(wrong)) as (url, _):
        done = stand.refusal("record", "-f", str(file), "--redact", "--extender-url", url)
    assert done == (
        6,
        "Failed to record: decision 1 would be another one under other names; "
        "record without --redact\n",
    )
    assert not file.exists()
