"""The extender's slots, where it runs in the same process."""

from app.controllers.job.slots import Slots
from app.main.wiring import Parts
from app.model.ids import group_key
from app.service.cycle.beyond_minimum import bearable_beyond
from app.service.telling.explanations import slots_to_pin


class SlotsHere:
    """What ``GET /plan/{namespace}/{podgroup}`` tells, by a function call."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def get(self, namespace: str, podgroup: str) -> Slots | None:
        """The slots of one PodGroup; None while this extender does not decide."""
        planning = self._parts.planning
        if not planning.leadership.deciding.is_set():
            return None
        cache = self._parts.cache
        group = cache.groups.get(group_key(namespace, podgroup))
        if group is None:
            return Slots(planning.log.generation, {})
        bearable = bearable_beyond(cache, planning.queries, group)
        return Slots(planning.log.generation, slots_to_pin(cache, group), bearable)
