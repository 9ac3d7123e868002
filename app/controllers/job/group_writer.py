"""Writes of the PodGroups of jobs."""

from app.controllers.job import group
from app.controllers.job.deletion import delete_object
from app.controllers.job.fresh import Fresh
from app.controllers.ports import Api
from app.wire.kinds import POD_GROUPS
from app.wire.unstructured import Object, key_of


class GroupWriter:
    """Writes, and notes what the API server answers."""

    def __init__(self, api: Api, fresh: Fresh) -> None:
        self._api = api
        self._fresh = fresh

    async def write(self, wanted: Object, stored: Object | None) -> Object:
        """Create or bring up to date the PodGroup of a job."""
        if stored is None:
            made = await self._api.create(POD_GROUPS, wanted)
            self._fresh.created(made)
            return made
        patch = group.change(stored, wanted)
        if patch is None:
            return stored
        made = await self._api.patch(POD_GROUPS, key_of(stored), patch)
        self._fresh.changed(made)
        return made

    async def delete(self, stored: Object) -> None:
        """Delete a PodGroup."""
        await delete_object(self._api, POD_GROUPS, stored, noted_in=self._fresh)
