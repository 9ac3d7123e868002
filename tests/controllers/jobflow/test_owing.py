"""Whose end a flow has still to tell of."""

from typing import Any

import pytest

from app.controllers.jobflow.owing import owed_by
from app.controllers.store import Store
from app.wire.kinds import JOB_FLOWS, JOBS
from app.wire.unstructured import Object, controlled_by
from tests.controllers.jobflow.flows import step
from tests.controllers.play import item


def flow(*ended: str, uid: str = "f", **metadata: Any) -> Object:
    entries = [{"name": job, "state": "Completed"} for job in ended]
    return item(
        JOB_FLOWS,
        "flow",
        metadata={"uid": uid, **metadata},
        spec={"flows": [step("a"), step("b")]},
        status={"jobStatusList": [*entries, {"name": "flow-b", "state": "Running"}]},
    )


def job(name: str, owner: Object) -> Object:
    return item(JOBS, name, metadata={"ownerReferences": [controlled_by(owner)]})


@pytest.mark.parametrize(
    ("known", "ended", "expected"),
    [
        (flow(), job("flow-a", flow()), True),
        (flow("flow-a"), job("flow-a", flow()), False),
        (flow("flow-a"), job("flow-b", flow()), True),
        (flow(), job("flow-c", flow()), False),
        (flow(uid="new"), job("flow-a", flow()), False),
        (flow(deletionTimestamp="2026-01-01T00:00:00Z"), job("flow-a", flow()), False),
        (None, job("flow-a", flow()), False),
        (flow(), item(JOBS, "flow-a"), False),
    ],
    ids=[
        "not noted",
        "noted",
        "noted while it ran",
        "no step any more",
        "another flow of the name",
        "a flow that goes",
        "a flow that is gone",
        "nobody's job",
    ],
)
def test_a_flow_owes_its_steps_a_note_of_their_end(
    known: Object | None, ended: Object, expected: bool
) -> None:
    flows = Store()
    if known is not None:
        flows.put(known)
    assert owed_by(flows)(ended) is expected


def test_where_nobody_follows_flows_nothing_is_owed() -> None:
    assert not owed_by(None)(job("flow-a", flow()))
