"""The view of ``pumice top``: everything that matters, on any number of columns and lines."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from app.cli import queue_shares, top_view
from app.cli.frames import Head
from app.cli.node_usage import Nodes
from app.cli.top_view import NODES, QUEUES, View, is_waiting, plain
from tests.cli.stand import Object, group, queue
from tests.cli.test_node_usage import node
from tests.scale import examples

NOW = 1_700_000_100.0
HEAD = Head(command="pumice top", host="https://cluster", time="12:00:00", every="2s")


def waiting(name: str, message: str = "cpu asked 12, free 4") -> Object:
    told = {"type": "Reserved", "status": "False", "reason": "NoRoom", "message": message}
    item = group(name, phase="Pending", conditions=[told])
    item["metadata"]["creationTimestamp"] = "2023-11-14T22:13:20Z"
    return item


def view(*, queues: int = 2, groups: int = 2, nodes: int = 2) -> View:
    there = Nodes([node(f"node-{number}") for number in range(nodes)], [])
    made = [queue(f"queue-{number}") for number in range(queues)]
    return View(
        shares=queue_shares.shares(made, {"cpu": 8000}),
        groups=[waiting(f"gang-{number}") for number in range(groups)],
        queues={"default": queue("default")},
        nodes=there.each(),
        total=there.all(),
    )


def lines(of: View, width: int = 100, height: int = 30, head: Head = HEAD) -> list[str]:
    """The lines that are drawn, without blanks at their ends."""
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    console.print(top_view.frame(of, head, now=NOW, width=width, height=height))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_all_is_shown_where_there_is_room() -> None:
    assert lines(view()) == [
        "pumice top  https://cluster" + " " * 47 + "12:00:00  every 2s  q ends",
        "",
        "Queues: 2",
        "Name     State  Waiting  Share              Of  Allocated  Deserved",
        "queue-0         0        [..........]   0%  -   <none>     cpu=~4",
        "queue-1         0        [..........]   0%  -   <none>     cpu=~4",
        "",
        "Waiting: 2",
        "Gang            Queue    Phase    For   Needs  Reason  Why",
        "default/gang-0  default  Pending  100s  2      NoRoom  cpu asked 12, free 4",
        "default/gang-1  default  Pending  100s  2      NoRoom  cpu asked 12, free 4",
        "",
        "Nodes: 2, cpu 0/16, memory 0/64Gi",
        "Name    State  CPU  Memory  GPUs  Jobs",
        "node-0  ready  0/8  0/32Gi  -     0",
        "node-1  ready  0/8  0/32Gi  -     0",
    ]


def test_rows_are_left_out_where_there_are_few_lines_and_the_title_says_so() -> None:
    assert lines(view(queues=1, groups=9, nodes=9), height=12) == [
        "pumice top  https://cluster" + " " * 47 + "12:00:00  every 2s  q ends",
        "Queues: 1",
        "Name     State  Waiting  Share              Of  Allocated  Deserved",
        "queue-0         0        [..........]   0%  -   <none>     cpu=~8",
        "Waiting: 9 (2 shown)",
        "Gang            Queue    Phase    For   Needs  Reason  Why",
        "default/gang-0  default  Pending  100s  2      NoRoom  cpu asked 12, free 4",
        "default/gang-1  default  Pending  100s  2      NoRoom  cpu asked 12, free 4",
        "Nodes: 9, cpu 0/72, memory 0/288Gi (2 shown)",
        "Name    State  CPU  Memory  GPUs  Jobs",
        "node-0  ready  0/8  0/32Gi  -     0",
        "node-1  ready  0/8  0/32Gi  -     0",
    ]


def test_waiting_gangs_are_what_is_left_on_very_few_lines() -> None:
    assert [line.split(":")[0] for line in lines(view(), height=5)][1:2] == ["Waiting"]
    assert lines(view(), height=3)[1:] == ["Queues: 2", "Waiting: 2"]


def test_columns_are_left_out_where_it_is_narrow_and_the_reason_is_cut_last() -> None:
    told = lines(view(), width=45)
    assert "Gang            For   Why" in told
    assert "default/gang-0  100s  cpu asked 12, free 4" in told
    assert "default/gang-0  cpu asked…" in lines(view(), width=26)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_long_name_is_cut_before_the_numbers_beside_it(width: int) -> None:
    named = queue_shares.shares([queue("q" * 200)], {"cpu": 8000})
    long = replace(view(), shares=named, groups=[waiting("g" * 60)])
    told = lines(long, width=width)
    [share] = [row for row in told if row.startswith("qqq")]
    [gang] = [row for row in told if row.startswith("default/ggg")]
    assert "…  " in share
    assert "[..........]   0%" in share
    assert "…  " in gang
    assert "cpu asked" in gang


def test_when_a_gang_starts_has_a_column_where_that_is_told() -> None:
    told = replace(view(groups=2), start_times={"default/gang-0": "4m-9m"})
    _, rows, _ = plain(told, now=NOW).split("\n\n")
    assert [row.split()[4] for row in rows.splitlines()[1:]] == ["ETA", "4m-9m", "-"]
    assert "ETA" not in plain(view(), now=NOW)


def test_trouble_has_a_line_of_its_own() -> None:
    head = replace(HEAD, trouble="the API server is not reached")
    assert lines(view(), head=head)[1] == (
        "the API server is not reached; what is shown may be old"
    )


def test_a_section_that_is_not_to_be_seen_says_why() -> None:
    unseen = View(groups=[waiting("a")], unseen={QUEUES: "not shown: no", NODES: "not shown: no"})
    assert "Queues: not shown: no" in lines(unseen)
    assert "Nodes: not shown: no\n" in plain(unseen, now=NOW)


def test_an_empty_cluster_has_words_for_everything() -> None:
    assert plain(View(queues={}), now=NOW) == (
        "Queues: there are no queues\n\nWaiting: no gang waits\n\nNodes: there are no nodes\n"
    )


def test_the_job_is_named_rather_than_its_group_and_the_longest_wait_comes_first() -> None:
    young, old = waiting("young"), waiting("train-123")
    young["metadata"]["creationTimestamp"] = "2023-11-14T22:14:20Z"
    owner = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "train", "uid": "u"}
    old["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    shown = plain(View(groups=[young, old]), now=NOW)
    assert [row.split()[0] for row in shown.split("\n\n")[1].splitlines()[2:]] == [
        "default/train",
        "default/young",
    ]


@pytest.mark.parametrize(
    ("phase", "waits"),
    [("", True), ("Pending", True), ("Inqueue", True), ("Running", False), ("Completed", False)],
)
def test_groups_wait_until_they_run(phase: str, *, waits: bool) -> None:
    assert is_waiting(group("a", phase=phase)) is waits
    leaving = group("a", phase=phase)
    leaving["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    assert not is_waiting(leaving)


def test_what_a_terminal_would_obey_is_not_sent_to_it() -> None:
    """A condition has the words of its writer, which may be any tenant."""
    spoken = View(groups=[waiting("a", "\x1b]0;owned\x07\n\x9b2J")])
    assert "\x1b" not in plain(spoken, now=NOW) + "".join(lines(spoken))
    assert " ]0;owned" in plain(spoken, now=NOW)


@given(
    view=st.builds(
        view,
        queues=st.integers(0, 6),
        groups=st.integers(0, 6),
        nodes=st.integers(0, 6),
    ),
    width=st.integers(1, 160),
    height=st.integers(1, 40),
)
@examples(200)
def test_nothing_is_drawn_beyond_the_terminal(view: View, width: int, height: int) -> None:
    drawn = lines(view, width, height)
    assert len(drawn) <= height
    assert all(cell_len(line) <= width for line in drawn)
    wanted = 2 + sum(
        2 + len(rows) if rows else 1 for rows in (view.shares, view.groups, view.nodes)
    )
    if height >= wanted:
        assert not any("shown)" in line for line in drawn)
