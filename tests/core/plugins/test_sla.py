"""sla: waiting times end."""

import pytest

from app.core.conf_error import ConfError
from app.core.policy import Vote
from app.model.gang import Gang
from tests.builders import make_gang, make_snapshot
from tests.core.plugins.sessions import open_plugin

OWN = "volcano.sh/sla-waiting-time"


def annotated(name: str, wait: str, *, key: str = OWN, created: float = 0.0) -> Gang:
    return make_gang(name, created=created, annotations={key: wait})


@pytest.mark.parametrize(
    ("now", "gang", "expected"),
    [
        (3599, make_gang(), Vote.ABSTAIN),
        (3600, make_gang(), Vote.PERMIT),
        (59, annotated("g", "1m"), Vote.ABSTAIN),
        (60, annotated("g", "1m"), Vote.PERMIT),
        (60, annotated("g", "1m", key="sla-waiting-time"), Vote.PERMIT),
        (3599, annotated("g", "soon"), Vote.ABSTAIN),
        (3600, annotated("g", "soon"), Vote.PERMIT),
        (3599, annotated("g", "-1m"), Vote.ABSTAIN),
        (69, annotated("g", "1m", created=10), Vote.ABSTAIN),
        (70, annotated("g", "1m", created=10), Vote.PERMIT),
    ],
)
def test_a_group_is_permitted_once_it_waited_long_enough(
    now: float, gang: Gang, expected: Vote
) -> None:
    hooks, _ = open_plugin("sla", make_snapshot(), now=now, arguments={"sla-waiting-time": "1h"})
    assert hooks.enqueueable
    assert hooks.pipelined
    assert hooks.enqueueable(gang).vote is expected
    assert hooks.pipelined(gang).vote is expected


@pytest.mark.parametrize(
    ("own", "bare", "due"),
    [("soon", "1m", 60), ("-1h", "1m", 60), ("", "1m", 60), ("2m", "1m", 120), ("soon", "", None)],
)
def test_the_bare_annotation_counts_where_the_other_cannot_be_read(
    own: str, bare: str, due: float | None
) -> None:
    gang = make_gang(annotations={OWN: own, "sla-waiting-time": bare})
    for now, expected in ((due or 1e9) - 1, Vote.ABSTAIN), (due or 1e9, Vote.PERMIT):
        hooks, _ = open_plugin("sla", make_snapshot(), now=now)
        assert hooks.enqueueable
        assert hooks.enqueueable(gang).vote is (expected if due else Vote.ABSTAIN)


def test_without_a_waiting_time_it_never_votes() -> None:
    hooks, _ = open_plugin("sla", make_snapshot(), now=1e9)
    assert hooks.enqueueable
    assert hooks.enqueueable(make_gang()).vote is Vote.ABSTAIN


def test_groups_are_ordered_by_the_end_of_their_waiting_time() -> None:
    hooks, _ = open_plugin("sla", make_snapshot())
    assert hooks.gang_order
    never = make_gang("never")
    late = annotated("late", "10m", created=0)
    early = annotated("early", "1m", created=100)

    assert sorted((never, late, early), key=hooks.gang_order) == [early, late, never]


@pytest.mark.parametrize("value", ["soon", 10, "-5m", "0", True])
def test_an_argument_that_is_no_positive_duration_is_refused(value: object) -> None:
    with pytest.raises(ConfError) as caught:
        open_plugin("sla", make_snapshot(), arguments={"sla-waiting-time": value})
    assert str(caught.value) == (
        f"plugin sla: argument sla-waiting-time: {value!r} is not a positive duration such as 1h30m"
    )
