"""Decisions are kept in files of bounded size, and nothing that happens to these stops a loop."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.main.adapters import audit_keeper
from app.main.adapters.audit_files import AuditFiles
from app.main.adapters.audit_keeper import AuditKeeper
from app.model.decision import AuditQuestion, Coverage, Decision, DecisionKind, KeptDecision
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.reason import Cause, Refusal, Shortfall
from app.sandbox.controlplane.processes import wait_until
from app.service.ports import TakesTooLong
from app.telemetry import metrics

BEGAN = 1_700_000_000.0
MIB = 1024 * 1024


def decision(job: str = "j", **fields: Any) -> Decision:
    defaults: dict[str, Any] = {
        "at": BEGAN + 1,
        "kind": DecisionKind.ADMIT,
        "group": GroupKey(f"default/{job}-uid"),
        "job": job,
        "queue": QueueName("q"),
        "stimulus": "cycle",
        "cause": "",
    }
    return Decision(**{**defaults, **fields})


def eviction(pod: str, *, plan: str = "plan@1", **fields: Any) -> Decision:
    return decision(
        kind=DecisionKind.EVICT,
        pod=pod,
        uid=PodUid(f"uid-{pod}"),
        preemptor="default/high",
        rule="priority",
        plan=plan,
        certificate={"version": 1, "victims": [pod]},
        **fields,
    )


@contextmanager
def keeper(
    folder: Path | None, *, size: int = 8 * MIB, days: float = 30.0
) -> Iterator[AuditKeeper]:
    made = AuditKeeper(folder, size=size, days=days, clock=lambda: BEGAN)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def asked(kept: AuditKeeper, **question: Any) -> tuple[KeptDecision, ...]:
    return kept.reader().read(AuditQuestion(**question)).decisions


def coverage(kept: AuditKeeper) -> Coverage:
    return kept.reader().read(AuditQuestion()).coverage


def test_a_decision_is_told_as_it_was_made(tmp_path: Path) -> None:
    step = (BEGAN, "cycle", 7, "waiting", "planned", "n1", "")
    made = decision(
        kind=DecisionKind.PLACE,
        pod="j-0",
        uid=PodUid("uid-j-0"),
        node=NodeName("n1"),
        generation=7,
        story=(step,),
    )
    with keeper(tmp_path) as kept:
        kept.keep(made)
        [told] = asked(kept)
    assert (told.number, told.kind, told.job, told.pod) == (1, "place", "j", "j-0")
    assert (told.node, told.generation, told.story) == ("n1", 7, [list(step)])
    assert told.refusal is None


def test_a_refusal_is_told_in_words_and_numbers(tmp_path: Path) -> None:
    lacks = Refusal(Cause.NOT_ENOUGH_RESOURCES, shortfalls=(Shortfall("cpu", 4000, 2000),))
    with keeper(tmp_path) as kept:
        kept.keep(decision(kind=DecisionKind.REFUSE, cause=lacks.cause.value, refusal=lacks))
        [told] = asked(kept)
    assert "cpu" in told.text
    assert told.refusal["shortfalls"][0]["asked"] == 4000


def test_questions_narrow_what_is_told(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.keep(decision("a", at=BEGAN + 1))
        kept.keep(decision("b", at=BEGAN + 2, queue=QueueName("other")))
        kept.keep(decision("a", at=BEGAN + 3, kind=DecisionKind.PLACE, pod="a-0"))
        kept.keep(decision("a", at=BEGAN + 4, group=GroupKey("elsewhere/a-uid")))
        kept.keep(eviction("low-0", job="low", group=GroupKey("default/low-uid"), at=BEGAN + 5))
        numbers = {
            "job default/a": (1, 3),
            "group default/a-uid": (1, 3),
            "preemptor": (5,),
            "pod": (3,),
            "namespace": (4,),
            "queue": (2,),
            "kind": (3,),
            "since": (3, 4, 5),
            "until": (1, 2),
            "latest": (4, 5),
            "before": (2, 3),
            "after": (4, 5),
        }
        questions: dict[str, dict[str, Any]] = {
            "job default/a": {"job": "default/a"},
            "group default/a-uid": {"job": "default/a-uid"},
            "preemptor": {"job": "default/high"},
            "pod": {"pod": "default/a-0"},
            "namespace": {"namespace": "elsewhere"},
            "queue": {"queue": "other"},
            "kind": {"kind": "place"},
            "since": {"since": BEGAN + 3},
            "until": {"until": BEGAN + 3},
            "latest": {"most": 2},
            "before": {"most": 2, "before": 4},
            "after": {"after": 3},
        }
        told = {
            name: tuple(each.number for each in asked(kept, **question))
            for name, question in questions.items()
        }
    assert told == numbers


def test_evictions_for_a_job_are_told_with_the_job(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.keep(decision("high", group=GroupKey("default/high")))
        kept.keep(eviction("low-0", job="low", group=GroupKey("default/low-uid")))
        assert [each.pod for each in asked(kept, job="default/high")] == ["", "low-0"]


def test_a_certificate_is_kept_once_for_all_victims_of_a_plan(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        for pod in ("low-0", "low-1"):
            kept.keep(eviction(pod))
        reader = kept.reader()
        assert reader.read_certificate("plan@1") == {"version": 1, "victims": ["low-1"]}
        assert reader.read_certificate("plan@2") is None


def test_a_folder_outlives_the_process(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.keep(decision("a"))
    with keeper(tmp_path) as kept:
        kept.keep(decision("b"))
        assert [(each.number, each.job) for each in asked(kept)] == [(1, "a"), (2, "b")]
        assert coverage(kept) == Coverage(
            outlives_process=True, folder=str(tmp_path), since=BEGAN, dropped=0, problems=()
        )


def test_decisions_of_earlier_processes_are_told_from_the_first_question_on(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.keep(decision("a"))
    with keeper(tmp_path) as kept:
        assert [each.job for each in asked(kept)] == ["a"]


def test_without_a_folder_decisions_go_with_the_process() -> None:
    with keeper(None) as kept:
        kept.keep(decision())
        assert len(asked(kept)) == 1
        told = coverage(kept)
        assert (told.outlives_process, told.folder, told.since) == (False, "", BEGAN)
        files = kept.reader().folder()
        assert files is not None
        assert files.exists()
    assert not files.exists()


def test_the_oldest_go_when_there_is_too_much(tmp_path: Path) -> None:
    with keeper(tmp_path, size=MIB) as kept:
        for number in range(40):
            for _ in range(100):
                kept.keep(decision(cause="x" * 500, at=BEGAN + number))
            kept.settle()
        told = asked(kept, most=10_000)
        used = sum(path.stat().st_size for path in tmp_path.iterdir())
        since = coverage(kept).since
    assert used < 2 * MIB
    assert 200 < len(told) < 4000
    assert told[-1].number == 4000
    assert [each.number for each in told] == list(range(told[0].number, 4001))
    assert since == told[0].at > BEGAN


def test_the_oldest_go_when_they_are_too_old(tmp_path: Path) -> None:
    with keeper(tmp_path, days=1.0) as kept:
        kept.keep(decision("old"))
        kept.settle()
        [first] = sorted(tmp_path.glob("audit-*.db"))
        kept.keep(decision("middle", at=BEGAN + 86_400))
        kept.settle()
        os.utime(first, (BEGAN, BEGAN))
        kept.keep(decision("new", at=BEGAN + 90_000))
        kept.settle()
        assert [each.job for each in asked(kept)] == ["new"]


def test_what_does_not_fit_into_the_queue_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_keeper, "MOST_WAITING", 3)
    before = metrics.AUDIT_DROPPED._value.get()
    made = AuditKeeper(tmp_path, size=MIB, days=1.0, clock=lambda: BEGAN)
    for _ in range(5):
        made.keep(decision())
    made.start()
    try:
        assert (len(asked(made)), coverage(made).dropped) == (3, 2)
    finally:
        made.stop()
    assert metrics.AUDIT_DROPPED._value.get() == before + 2


@pytest.mark.parametrize(
    "bad",
    [{"cause": "\ud800"}, {"generation": 2**70}, {"text": ["a", "list"]}, {"kind": None}],
    ids=["a lone surrogate", "a number without bounds", "a list for a text", "no kind"],
)
def test_a_decision_that_cannot_be_written_costs_no_other(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    made = AuditKeeper(tmp_path, size=MIB, days=1.0, clock=lambda: BEGAN)
    for each in (decision("a"), decision("bad", **bad), decision("b")):
        made.keep(each)
    made.start()
    try:
        made.settle()
        made.keep(decision("c"))
        told = asked(made)
        assert [(each.number, each.job) for each in told] == [(1, "a"), (2, "b"), (3, "c")]
        assert coverage(made).dropped == 1
        [notice] = made.notices()
        assert notice.startswith("decisions dropped that cannot be written: 1, the last since ")
    finally:
        made.stop()


def test_a_failure_that_is_not_foreseen_is_told_of_and_writing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_keeper, "_PATIENCE_S", 0.0)
    opened, fails = AuditFiles.open, True

    def open_(self: AuditFiles) -> None:
        if fails:
            raise RuntimeError("not foreseen")
        opened(self)

    monkeypatch.setattr(AuditFiles, "open", open_)
    with keeper(tmp_path) as kept:
        kept.keep(decision("waits"))
        wait_until(lambda: bool(kept.notices()), timeout_s=5, what="a notice")
        assert "not foreseen" in kept.notices()[0]
        fails = False
        wait_until(lambda: not kept.notices(), timeout_s=5, what="that it is kept")
        assert [each.job for each in asked(kept)] == ["waits"]


def test_files_that_cannot_be_tidied_do_not_stop_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rotate(_self: AuditFiles, *, now: float) -> None:
        raise ValueError(now)

    monkeypatch.setattr(AuditFiles, "rotate", rotate)
    with keeper(tmp_path) as kept:
        for job in ("a", "b"):
            kept.keep(decision(job))
            kept.settle()
        assert [each.job for each in asked(kept)] == ["a", "b"]


@pytest.mark.parametrize(
    "name",
    [
        "audit-0000000000000001 (copy).db",
        "audit-old.db",
        "audit-1.db",
        "audit-0000000000000009.db.bak",
        "audit-9999999999999999.db-old",
    ],
)
def test_files_of_other_names_are_passed_over_and_left_alone(tmp_path: Path, name: str) -> None:
    other = tmp_path / name
    other.write_bytes(b"of an operator " * MIB)
    with keeper(tmp_path, size=MIB) as kept:
        for _ in range(3):
            kept.keep(decision())
            kept.settle()
        assert [each.number for each in asked(kept)] == [1, 2, 3]
        assert coverage(kept) == Coverage(
            outlives_process=True, folder=str(tmp_path), since=BEGAN, dropped=0, problems=()
        )
    assert other.stat().st_size == 15 * MIB
    assert (tmp_path / "audit-0000000000000001.db").exists()


# --- the disk -------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_told_of_and_nothing_stops(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with keeper(tmp_path / "audit") as kept:
            kept.keep(decision())
            wait_until(lambda: bool(kept.notices()), timeout_s=5, what="a notice")
            assert "Permission denied" in kept.notices()[0]
            assert coverage(kept).problems == kept.notices()
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("folder", ["taken", "/proc/audit"])
def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path, folder: str) -> None:
    (tmp_path / "taken").write_text("")
    with keeper(tmp_path / folder) as kept:
        kept.keep(decision())
        wait_until(lambda: bool(kept.notices()), timeout_s=5, what="a notice")
        assert asked(kept) == ()


def test_decisions_wait_for_a_folder_that_another_process_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_keeper, "_PATIENCE_S", 0.0)
    with keeper(tmp_path) as first:
        first.keep(decision("early"))
        first.settle()
        with keeper(tmp_path) as second:
            second.keep(decision("late"))
            wait_until(lambda: bool(second.notices()), timeout_s=5, what="a notice")
            assert "another process" in second.notices()[0]
            first.stop()
            wait_until(lambda: not second.notices(), timeout_s=5, what="that it is kept")
            assert [each.job for each in asked(second)] == ["early", "late"]


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        kept.keep(decision("lost"))
    [file] = tmp_path.glob("audit-*.db")
    file.write_bytes(b"no database, but long enough to be looked at " * 100)
    with keeper(tmp_path) as kept:
        kept.keep(decision("kept"))
        assert [each.job for each in asked(kept)] == ["kept"]
        [problem] = coverage(kept).problems
        assert problem == f"{file.name} is damaged, it was put aside"
    assert file.with_suffix(".damaged").exists()


def test_a_file_that_is_damaged_while_it_is_written_is_put_aside(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        for number in range(2000):
            kept.keep(decision(cause=f"{number}" * 20))
        kept.settle()
    [file] = tmp_path.glob("audit-*.db")
    with file.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(os.urandom(file.stat().st_size - 4096))
    with keeper(tmp_path) as kept:
        for _ in range(10):
            kept.keep(decision("kept"))
        wait_until(
            lambda: len(asked(kept, job="default/kept")) == 10, timeout_s=10, what="all are kept"
        )
        assert coverage(kept).problems


def test_an_older_file_that_is_damaged_costs_its_own_decisions(tmp_path: Path) -> None:
    with keeper(tmp_path, size=MIB) as kept:
        for number in range(10):
            for _ in range(100):
                kept.keep(decision(cause="x" * 500, at=BEGAN + number))
            kept.settle()
        first, *others = sorted(tmp_path.glob("audit-*.db"))
        assert others
        first.write_bytes(b"no database" * 1000)
        answer = kept.reader().read(AuditQuestion(most=2000))
    assert answer.decisions[-1].number == 1000
    assert answer.decisions[0].number == int(others[0].stem.removeprefix("audit-"))
    assert any(f"{first.name} cannot be read" in each for each in answer.coverage.problems)


def test_a_full_disk_costs_the_oldest_file_first_and_then_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says so by the same error when a database may not grow."""
    monkeypatch.setattr(audit_keeper, "_PATIENCE_S", 0.0)
    pages = 20
    opened = AuditFiles.open

    def narrow(self: AuditFiles) -> None:
        opened(self)
        assert self._file is not None
        self._file.execute(f"PRAGMA max_page_count={pages}")

    monkeypatch.setattr(AuditFiles, "open", narrow)
    with keeper(tmp_path) as kept:
        kept.keep(decision("first"))
        kept.settle()
        for _ in range(300):
            kept.keep(decision(cause="x" * 500))
        wait_until(lambda: bool(kept.notices()), timeout_s=5, what="a notice")
        assert "full" in kept.notices()[0]
        assert [each.job for each in asked(kept)] == ["first"]
        pages = 1_000_000
        wait_until(lambda: not kept.notices(), timeout_s=5, what="that it is kept")
        assert len(asked(kept, most=1000)) == 301
        assert coverage(kept).dropped == 0


def test_closed_files_are_whole_databases_of_one_file(tmp_path: Path) -> None:
    with keeper(tmp_path, size=MIB) as kept:
        for _ in range(500):
            kept.keep(decision(cause="x" * 500))
        kept.settle()
        first, *_ = sorted(tmp_path.glob("audit-*.db"))
        with closing(sqlite3.connect(f"file:{first}?mode=ro&immutable=1", uri=True)) as file:
            [(mode,)] = file.execute("PRAGMA journal_mode")
    assert mode == "delete"


def test_a_question_whose_answer_takes_too_long_to_read_is_given_up(tmp_path: Path) -> None:
    with keeper(tmp_path) as kept:
        for number in range(300):
            kept.keep(decision(f"job-{number}"))
        kept.settle()
        with pytest.raises(TakesTooLong, match="ask about a shorter time"):
            dataclasses.replace(kept.reader(), most_s=0.0).read(AuditQuestion(job="default/job-7"))
        assert len(asked(kept, job="default/job-7")) == 1
