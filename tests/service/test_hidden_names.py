"""What stands in a tenant's own objects names no object of another namespace, where asked."""

import json

import pytest

from app.model.ids import NodeName
from app.model.workload import Namespace
from app.service.limits import Limits
from tests.builders import make_pod
from tests.service.evicting import TWO, Contended
from tests.service.rig import working
from tests.service.virtual_time import advance

SECRET = "team-b"


@pytest.mark.parametrize("hides", [True, False])
async def test_conditions_and_events_hide_names_of_others_where_that_is_asked(hides: bool) -> None:
    rig = Contended(Limits(hides_other_namespaces=hides), taken=False)
    rig.see("namespaces", Namespace(SECRET, {}, {}))
    for number in range(4):
        node = NodeName(f"n{number // 2 + 1}")
        name = f"project-x-{number}"
        rig.store(make_pod(name, namespace=SECRET, node=node, phase="Running", shape=TWO))
    rig.gang("big", size=3, gated=True, shape=TWO)
    with working(rig):
        for _ in range(20):
            await rig.cycle()
            await advance(1)
    written = [json.dumps(write.body, default=str) for write in rig.api.writes]
    events = [str(event) for event in rig.api.events]
    told = [text for text in (*written, *events) if "held by" in text]
    kinds = {"pumice.sh/Placed", "Unschedulable", "FailedScheduling"}
    assert all(any(kind in text for text in told) for kind in kinds), told
    assert any("another namespace (cpu" in text for text in told) == hides
    assert any(SECRET in text for text in (*written, *events)) == (not hides)
