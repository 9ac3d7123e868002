"""Writes into pods what the agents of their nodes are to do, as ColocationConfigurations say.

Of several that select a pod the newest counts. A pod that none selects any more is told ``{}``, by
which its agent knows that it is to undo what it did; pods that no configuration ever selected are
left as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from app.controllers.ports import Api
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store
from app.model.colocation import CONFIG, CONFIG_NAME, RESET
from app.model.shape import LabelSelector
from app.wire.documents import is_terminal
from app.wire.errors import DecodeError
from app.wire.kinds import COLOCATION_CONFIGURATIONS, PODS, Resource
from app.wire.objects.colocation import config_text, selector_of
from app.wire.unstructured import (
    Key,
    Object,
    annotations,
    is_deleting,
    key_of,
    labels,
    metadata,
    name,
    namespace,
    spec,
    uid,
)

NAME: Final = "colocation-config-controller"
_BY_NAMESPACE: Final = "namespace"
INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    COLOCATION_CONFIGURATIONS: {_BY_NAMESPACE: namespace},
    PODS: {_BY_NAMESPACE: namespace},
}
"""How this controller finds objects in the stores."""


class ColocationController:
    """The pods, by their names."""

    name = NAME
    kinds = (COLOCATION_CONFIGURATIONS, PODS)

    def __init__(self, stores: Mapping[Resource, Store], *, api: Api) -> None:
        self._pods = stores[PODS]
        self._configurations = stores[COLOCATION_CONFIGURATIONS]
        self._api = api

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """A pod that may have to be told something, or those that a configuration selects."""
        item = change.item
        if change.resource is COLOCATION_CONFIGURATIONS:
            selectors = [_selector(each) for each in (change.old, change.new) if each is not None]
            pods = self._pods.by(_BY_NAMESPACE, namespace(item))
            return [
                key_of(pod)
                for pod in pods
                if any(each is not None and each.matches(labels(pod)) for each in selectors)
            ]
        concerned = CONFIG in annotations(item) or any(
            self._configurations.by(_BY_NAMESPACE, namespace(item))
        )
        return (key_of(item),) if concerned and change.new is not None else ()

    async def reconcile(self, key: Key) -> None:
        """Write the annotations of the pod, if they say something else."""
        pod = self._pods.get(key)
        if pod is None or is_deleting(pod) or is_terminal(pod):
            return
        found = self._configuration(pod)
        has = {each: annotations(pod).get(each) for each in (CONFIG, CONFIG_NAME)}
        wanted: dict[str, str | None] = {CONFIG: RESET, CONFIG_NAME: None}
        if found is not None:
            wanted = {CONFIG: config_text(spec(found)), CONFIG_NAME: name(found)}
        elif not any(has.values()):
            return
        if has != wanted:
            body: Object = {"metadata": {"uid": uid(pod), "annotations": wanted}}
            with unless(*GONE):
                self._pods.renew(await self._api.patch(PODS, key, body))

    def _configuration(self, pod: Object) -> Object | None:
        """The newest one that selects the pod."""
        there = self._configurations.by(_BY_NAMESPACE, namespace(pod))
        selecting = [
            each
            for each in there
            if not is_deleting(each)
            and (selector := _selector(each)) is not None
            and selector.matches(labels(pod))
        ]
        return max(selecting, key=_age, default=None)


def _age(configuration: Object) -> tuple[str, str]:
    return str(metadata(configuration).get("creationTimestamp") or ""), name(configuration)


def _selector(configuration: Object) -> LabelSelector | None:
    """None where none is given, or where it cannot be read, which admission refuses."""
    try:
        return selector_of(spec(configuration))
    except DecodeError:
        return None
