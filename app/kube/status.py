"""Status writes to custom resources whose definition may lack the status subresource.

A cluster that had Volcano before may define PodGroups and Queues either way: with the subresource
the main resource ignores ``status`` silently, without it ``/status`` does not exist. The discovery
document tells which; it is read at the first status write, and again after a 404 (which else means
that the object is gone).
"""

from collections.abc import Mapping

import msgspec

from app.kube.answers import decoded
from app.kube.client import ApiClient
from app.kube.errors import NotFound

Merge = Mapping[str, object]


class _Resource(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: list[_Resource]


_decode_resources = msgspec.json.Decoder(_ResourceList).decode


class StatusPatcher:
    """Merge patches to the objects of one kind."""

    def __init__(self, client: ApiClient, *, home: str, plural: str) -> None:
        self._client = client
        self._home = home
        """Path of the group and version."""
        self._subresource = f"{plural}/status"
        self._has_subresource: bool | None = None

    async def patch(self, path: str, merge: Merge) -> None:
        """Write ``merge`` to the object at ``path``, its ``status`` where the cluster keeps it."""
        if "status" not in merge or not await self._split():
            await self._client.patch(path, merge)
            return
        rest = {key: value for key, value in merge.items() if key != "status"}
        if rest:
            await self._client.patch(path, rest)
        try:
            await self._client.patch(f"{path}/status", {"status": merge["status"]})
        except NotFound:
            self._has_subresource = None
            raise

    async def _split(self) -> bool:
        if self._has_subresource is None:
            known = decoded(await self._client.get(self._home), _decode_resources)
            self._has_subresource = any(r.name == self._subresource for r in known.resources)
        return self._has_subresource
