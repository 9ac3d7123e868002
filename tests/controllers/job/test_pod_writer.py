"""Writes of many pods."""

import asyncio
import math
from functools import partial

from app.controllers.job.controller import INDEXES
from app.controllers.job.fresh import Fresh
from app.controllers.job.pod_writer import CONCURRENT_WRITES, SLICE_S, PodWriter
from app.controllers.store import Store
from app.wire import unstructured
from app.wire.kinds import PODS, Resource
from app.wire.unstructured import Object
from tests.controllers.fake_api import FakeApi
from tests.controllers.job.jobs import make_job
from tests.controllers.job.rig import task
from tests.service import virtual_time

_PODS = 500
_EACH_S = 0.25


class _SlowApi(FakeApi):
    """Takes a while for every pod."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock)
        self.busy = self.busiest = 0

    async def create(self, resource: Resource, item: Object) -> Object:
        """Create ``item``."""
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(_EACH_S)
        self.busy -= 1
        return await super().create(resource, item)


async def test_pods_are_made_side_by_side_and_what_takes_too_long_is_left() -> None:
    """Those that are begun in time are made, some at a time; the next look makes the others."""
    job = make_job({"tasks": [task(replicas=_PODS)]})
    in_time = CONCURRENT_WRITES * (1 + math.floor(SLICE_S / _EACH_S))

    def pod(number: int) -> Object:
        owner = unstructured.controlled_by(job.item)
        metadata = {"name": f"p{number}", "namespace": "ns", "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": {}}

    api = _SlowApi()
    fresh = Fresh(Store(INDEXES[PODS]), clock=virtual_time.clock)
    writer = PodWriter(api, fresh, clock=virtual_time.clock)
    began = virtual_time.clock()
    made, errors, _ = await writer.create(job, [partial(pod, n) for n in range(_PODS)])
    assert (len(made), errors) == (in_time, [])
    took_s = virtual_time.clock() - began
    assert len(api.all(PODS)) == in_time < _PODS
    assert api.busiest == CONCURRENT_WRITES
    assert took_s <= SLICE_S + _EACH_S
