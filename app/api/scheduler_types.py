"""The bodies of kube-scheduler's calls as ``/docs`` shows them.

The types of k8s.io/kube-scheduler's ``extender/v1``, with Go's field names as keys. They describe
only: :mod:`app.wire.extender` reads and writes the bodies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel, to_pascal

from app.wire.extender import MAX_SCORE

Text = Annotated[str, Field(min_length=1)]


class _Object(BaseModel):
    """A part of a Kubernetes object; what else it has does not matter here."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow")


class _Body(BaseModel):
    """A body of extender/v1."""

    model_config = ConfigDict(alias_generator=to_pascal, extra="allow")


class PodMetadata(_Object):
    """The UID, namespace and name of a v1.Pod."""

    uid: Text
    namespace: str | None = None
    name: str = ""


class PodSpec(_Object):
    """What a v1.PodSpec says of its scheduler and its node; null: nothing yet."""

    scheduler_name: str | None = None
    node_name: str | None = None


class Pod(_Object):
    """A v1.Pod."""

    metadata: PodMetadata
    spec: PodSpec


class NodeMetadata(_Object):
    """What is read of a v1.Node's metadata."""

    name: str


class Node(_Object):
    """A v1.Node."""

    metadata: NodeMetadata


class NodeList(_Object):
    """A v1.NodeList."""

    items: list[Node] | None = None


class ExtenderArgs(_Body):
    """The pod, and the nodes offered: names (``nodeCacheCapable: true``), else whole objects."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class ExtenderFilterResult(_Body):
    """Where the pod may go, in the form in which the nodes came, and why not elsewhere.

    With an ``Error`` the call failed: the pod is tried again after a back-off.
    """

    nodes: NodeList | None
    node_names: list[str] | None
    failed_nodes: dict[str, str] | None
    failed_and_unresolvable_nodes: dict[str, str] | None
    error: str


class HostPriority(_Body):
    """The score of one offered node; a node with a higher score is preferred."""

    host: str
    score: Annotated[int, Field(ge=0, le=MAX_SCORE)]


class HostPriorityList(RootModel[list[HostPriority]]):
    """The offered nodes with their scores."""


class ExtenderBindingArgs(_Body):
    """Which pod goes where."""

    pod_name: Text
    pod_namespace: str
    pod_uid: Annotated[Text, Field(alias="PodUID")]
    node: Text


class ExtenderBindingResult(_Body):
    """Why the pod is not bound; empty: it is."""

    error: str


class VictimPod(_Object):
    """A v1.Pod."""

    metadata: PodMetadata


class Victims(_Body):
    """The pods to evict from one node, as objects, and how many disruption budgets they violate."""

    pods: list[VictimPod] | None = None
    violations: Annotated[int, Field(alias="NumPDBViolations")] = 0


class MetaPod(_Body):
    """A v1.Pod by its UID."""

    uid: Annotated[str, Field(alias="UID")]


class MetaVictims(_Body):
    """The pods to evict from one node, by UID, and how many disruption budgets they violate."""

    pods: list[MetaPod] | None = None
    violations: Annotated[int, Field(alias="NumPDBViolations")] = 0


class ExtenderPreemptionArgs(_Body):
    """The preemptor, and its victims by node: by UID, else as whole pods."""

    pod: Pod
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderPreemptionResult(_Body):
    """The evictions that may be done; no node: none."""

    node_name_to_meta_victims: dict[str, MetaVictims]


@dataclass(frozen=True, slots=True)
class Bodies:
    """The types of one call."""

    asked: type[BaseModel]
    answered: type[BaseModel]


BODIES: Final[Mapping[str, Bodies]] = {
    "filter": Bodies(ExtenderArgs, ExtenderFilterResult),
    "prioritize": Bodies(ExtenderArgs, HostPriorityList),
    "bind": Bodies(ExtenderBindingArgs, ExtenderBindingResult),
    "preempt": Bodies(ExtenderPreemptionArgs, ExtenderPreemptionResult),
}
"""By verb."""


@cache
def request_body(verb: str) -> dict[str, Any]:
    """The OpenAPI object of the body that ``verb`` takes.

    A request's types are no components: FastAPI collects only those of what it parses itself.
    """
    schema = BODIES[verb].asked.model_json_schema()
    parts = schema.pop("$defs", {})
    return {"required": True, "content": {"application/json": {"schema": _whole(schema, parts)}}}


def _whole(schema: Any, parts: Mapping[str, Any]) -> Any:
    """``schema`` with every reference replaced by what it names; none leads back to itself."""
    match schema:
        case {"$ref": str(reference)}:
            return _whole(parts[reference.rpartition("/")[2]], parts)
        case dict():
            return {key: _whole(value, parts) for key, value in schema.items()}
        case list():
            return [_whole(value, parts) for value in schema]
    return schema
