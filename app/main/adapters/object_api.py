"""The controllers' port to the API server, met by the client: bytes here, objects there."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from app.controllers.ports import ApiError, Failure, Patch
from app.kube import bodies, errors
from app.kube.answers import decoded
from app.kube.client import ApiClient, ContentType
from app.wire.kinds import PODS, Resource
from app.wire.unstructured import Key, Object, key_of, namespace

FIELD_MANAGER = "pumice"

_CONTENT = {
    Patch.MERGE: ContentType.MERGE,
    Patch.JSON: ContentType.JSON_PATCH,
    Patch.APPLY: ContentType.APPLY,
}

_FAILURES: tuple[tuple[type[errors.KubeError], Failure], ...] = (
    (errors.NotFound, Failure.NOT_FOUND),
    (errors.AlreadyExists, Failure.EXISTS),
    (errors.Outdated, Failure.CONFLICT),
    (errors.Refused, Failure.REFUSED),
)

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ObjectApi:
    """Any kind of object over one client."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def create(self, resource: Resource, item: Object) -> Object:
        """Create ``item``."""
        path = resource.path(namespace=namespace(item))
        with _translating():
            return decoded(await self._client.create(path, item), _decode)

    async def get(self, resource: Resource, key: Key) -> Object:
        """The object as stored now."""
        with _translating():
            return decoded(await self._client.get(resource.path(key)), _decode)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        how: Patch = Patch.MERGE,
        subresource: str = "",
    ) -> Object:
        """Change the object."""
        params = {"fieldManager": FIELD_MANAGER}
        if how is Patch.APPLY:
            params["force"] = "true"
        path = resource.path(key, subresource=subresource)
        with _translating():
            answer = await self._client.patch(path, body, content_type=_CONTENT[how], params=params)
            return decoded(answer, _decode)

    async def update(self, resource: Resource, item: Object, *, subresource: str = "") -> Object:
        """Replace the object."""
        path = resource.path(key_of(item), subresource=subresource)
        with _translating():
            return decoded(await self._client.replace(path, item), _decode)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        grace_s: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> None:
        """Delete the object."""
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        with _translating():
            await self._client.delete(resource.path(key), options)

    async def evict(self, key: Key, *, uid: str) -> None:
        """Evict the pod."""
        body = bodies.eviction(key.name, namespace=key.namespace, uid=uid)
        with _translating():
            await self._client.create(PODS.path(key, subresource="eviction"), body)


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except errors.KubeError as error:
        raise translated(error) from error


def translated(error: errors.KubeError) -> ApiError:
    """The failure in the controllers' words."""
    for kind, failure in _FAILURES:
        if isinstance(error, kind):
            return ApiError(failure, str(error), retry_after_s=error.retry_after_s)
    return ApiError(Failure.PASSING, str(error), retry_after_s=error.retry_after_s)
