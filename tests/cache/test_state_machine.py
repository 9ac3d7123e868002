"""Whatever events and reservations come, in any order, the cache equals what is worked out anew.

:mod:`tests.cache.events`, :mod:`tests.cache.group_events` and :mod:`tests.cache.decisions` are the
steps, :mod:`tests.cache.checks` is what must hold after each, :mod:`tests.cache.naive` is the model
that it is compared with.
"""

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from app.model.ids import PodUid
from app.model.workload import GroupPhase
from tests.cache.checks import Checks
from tests.cache.decisions import Decisions
from tests.cache.events import Events
from tests.cache.group_events import GroupEvents
from tests.cache.machine import GROUPS, NODES
from tests.cache.naive import Reservations
from tests.scale import examples


class CacheMachine(Events, GroupEvents, Decisions, Checks):
    """All of it together, on a cluster where something goes on already."""

    @initialize(
        data=st.data(),
        cpu=st.sampled_from([2000, 3000, 5000]),
        least=st.integers(0, 3),
        pods=st.integers(1, 5),
    )
    def start(self, data: st.DataObject, cpu: int, least: int, pods: int) -> None:
        for name in NODES[:2]:
            self.set_node(name=name, cpu=cpu, pods=10, extra=0, ready=True, cordoned=False)
        for name in GROUPS:
            self.set_group(
                name=name,
                least=least,
                role_least={},
                sub_groups=(),
                phase=GroupPhase.INQUEUE,
                queue="default",
                deleting=False,
                anew=False,
            )
        for _ in range(pods):
            self.create_pod(data=data)
        for _ in range(3):
            self.reserve(data=data, late=0.0)
        for uid in sorted(Reservations.read(self.cache).members):
            for what in data.draw(st.sampled_from([(), ("assume",), ("assume", "binding")])):
                self.call(PodUid(uid), what)


TestCacheMachine = pytest.mark.timeout(300)(CacheMachine.TestCase)
TestCacheMachine.settings = examples(
    150,
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow],
)
