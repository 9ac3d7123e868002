"""How much of nodes is requested, one by one or by domains of the network.

A domain is a HyperNode with the nodes below it; above all is the whole cluster. What any pod
requests counts until the pod ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.cli.pod_rows import JOB_LABEL
from app.cli.queue_shares import readable, rounded, takes_pods, texts
from app.cli.tables import NONE, Column, fitted, table
from app.core.topology.problems import Problem, problems
from app.core.topology.tree import Tree
from app.model.pod import GROUP_ANNOTATION
from app.webhooks.requests import added, pod_requests
from app.wire.objects.hyper_nodes import members_of
from app.wire.unstructured import Object, annotations, labels, name, namespace, spec, status

CLUSTER: Final = "cluster"
OUTSIDE: Final = "<in no HyperNode>"
NO_DOMAINS: Final = (
    "No HyperNodes found: all nodes are one domain. (Of domains by labels of nodes, which the "
    "plugin network-topology-aware can be told, /debug/domains of the extender knows.)\n"
)
_ENDED = frozenset({"Succeeded", "Failed"})
_SHOWN = ("cpu", "memory")
_UNTOLD = frozenset({*_SHOWN, "pods", "ephemeral-storage"})
_GAP = 2

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Nodes together: what they have, and what is requested of it, by resource in base units.

    ``tier`` None: it is no HyperNode. ``away`` counts the nodes that take no pods now, ``jobs`` the
    jobs and groups with pods there.
    """

    name: str
    depth: int = 0
    tier: int | None = None
    tier_name: str = ""
    nodes: int
    away: int
    allocatable: Amounts
    requested: Amounts
    jobs: int
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """What counts of a pod on a node; ``job`` is empty where no job or group has made it."""

    node: str
    requested: Amounts
    job: str = ""


def placed(pod: Object) -> Placed | None:
    """What counts of the pod; None where it is on no node, or has ended."""
    node = str(spec(pod).get("nodeName") or "")
    if not node or status(pod).get("phase") in _ENDED:
        return None
    of = labels(pod).get(JOB_LABEL) or annotations(pod).get(GROUP_ANNOTATION)
    return Placed(node, pod_requests(spec(pod)), f"{namespace(pod)}/{of}" if of else "")


class Nodes:
    """The nodes of a cluster with the pods that are on them."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Placed]) -> None:
        self._nodes = {name(node): node for node in nodes}
        self._allocatable = {
            key: readable(status(node).get("allocatable")) for key, node in self._nodes.items()
        }
        self._requested: dict[str, dict[str, int]] = {}
        self._jobs: dict[str, set[str]] = {}
        for pod in pods:
            if pod.node not in self._nodes:
                continue
            self._requested[pod.node] = added(self._requested.get(pod.node, {}), pod.requested)
            if pod.job:
                self._jobs.setdefault(pod.node, set()).add(pod.job)

    def all(self) -> Usage:
        """The usage of all nodes together."""
        return self._room(self._nodes, name=CLUSTER)

    def each(self) -> list[Usage]:
        """The usage of each node, by name."""
        return [self._room([key], name=key) for key in sorted(self._nodes)]

    def by_domain(self, hyper_nodes: Sequence[Object]) -> list[Usage]:
        """The usage of each HyperNode, each before what is below it; the whole cluster comes first.

        A HyperNode that is a member of several stands below that of the lowest tier.
        """
        tree = Tree()
        for key, node in self._nodes.items():
            tree.put_node(key, labels(node))
        for each in hyper_nodes:
            tree.put(name(each), labels(each), members_of(spec(each)))
        known = {name(each): each for each in hyper_nodes}
        tiers = {key: _tier(each) for key, each in known.items()}
        wrong = problems(tree, tiers)
        children: dict[str, list[str]] = {}
        parents = tree.parents(sorted(known, key=lambda key: (tiers[key], key)))
        for key in sorted(known, key=lambda key: (-tiers[key], key)):
            children.setdefault(parents.get(key, CLUSTER), []).append(key)

        def walk() -> Iterator[Usage]:
            ahead = [(key, 1) for key in reversed(children.get(CLUSTER, ()))]
            while ahead:
                key, depth = ahead.pop()
                yield self._room(
                    tree.below(key).nodes,
                    name=key,
                    depth=depth,
                    tier=tiers[key],
                    tier_name=str(spec(known[key]).get("tierName") or ""),
                    problems=wrong.get(key, ()),
                )
                ahead += [(below, depth + 1) for below in reversed(children.get(key, ()))]

        inside = {node for key in known for node in tree.below(key).nodes}
        outside = self._nodes.keys() - inside
        others = [self._room(outside, name=OUTSIDE, depth=1)] if outside and known else []
        return [self.all(), *walk(), *others]

    def _room(
        self,
        keys: Iterable[str],
        *,
        name: str,
        depth: int = 0,
        tier: int | None = None,
        tier_name: str = "",
        problems: tuple[Problem, ...] = (),
    ) -> Usage:
        there = list(keys)
        return Usage(
            name=name,
            depth=depth,
            tier=tier,
            tier_name=tier_name,
            nodes=len(there),
            away=sum(not takes_pods(self._nodes[key]) for key in there),
            allocatable=_summed(self._allocatable[key] for key in there),
            requested=_summed(self._requested.get(key, {}) for key in there),
            jobs=len(set().union(*(self._jobs.get(key, set()) for key in there))),
            problems=problems,
        )


def rows(found: Sequence[Usage], *, domains: bool, wide: bool) -> str:
    """The table of ``top nodes``; ``domains``: each line is of several nodes."""
    first = [_column("Name", lambda usage: "  " * usage.depth + usage.name)]
    if domains:
        first += [
            _column("Tier", lambda usage: "-" if usage.tier is None else str(usage.tier)),
            _column("Nodes", lambda usage: str(usage.nodes)),
        ]
    amounts = [
        _column("CPU", lambda usage: requested_of(usage, "cpu")),
        _column("Memory", lambda usage: requested_of(usage, "memory")),
        _column("GPUs", gpus),
        _column("Jobs", lambda usage: str(usage.jobs)),
    ]
    more = [_column("Away", lambda usage: str(usage.away)), _column("Others", _others)]
    if domains:
        more += [
            _column("Tier name", lambda usage: usage.tier_name or "-"),
            _column("Wrong", _wrong),
        ]
    lines = [{"usage": usage} for usage in found]
    return table([*first, *amounts, *(more if wide else [])], lines)


def values(found: Sequence[Usage]) -> list[Object]:
    """The usages for programs."""
    return [
        {
            "name": usage.name,
            "depth": usage.depth,
            "tier": usage.tier,
            "tierName": usage.tier_name,
            "nodes": usage.nodes,
            "away": usage.away,
            "allocatable": texts(usage.allocatable),
            "requested": texts(usage.requested),
            "jobs": usage.jobs,
            "problems": [
                {"reason": each.reason, "message": each.message} for each in usage.problems
            ],
        }
        for usage in found
    ]


def _tier(hyper_node: Object) -> int:
    tier = spec(hyper_node).get("tier")
    return tier if isinstance(tier, int) else 0


def _summed(amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        total = added(total, each)
    return total


def _is_gpu(resource: str) -> bool:
    return resource.endswith("/gpu")


def requested_of(usage: Usage, resource: str) -> str:
    """``requested/allocatable``."""
    requested, allocatable = (
        rounded(resource, amounts.get(resource, 0))
        for amounts in (usage.requested, usage.allocatable)
    )
    return f"{requested}/{allocatable}"


def gpus(usage: Usage) -> str:
    """``requested/allocatable`` of all kinds of GPUs together; ``-`` where there are none."""
    requested, allocatable = (
        sum(amount for resource, amount in amounts.items() if _is_gpu(resource))
        for amounts in (usage.requested, usage.allocatable)
    )
    return f"{requested}/{allocatable}" if requested or allocatable else "-"


def _others(usage: Usage) -> str:
    known = sorted(usage.allocatable.keys() | usage.requested.keys())
    told = [each for each in known if each not in _UNTOLD and not _is_gpu(each)]
    return ",".join(f"{each}={requested_of(usage, each)}" for each in told) or NONE


def _wrong(usage: Usage) -> str:
    return "; ".join(each.message for each in usage.problems) or NONE


def _column(title: str, cell: Callable[[Usage], str]) -> Column:
    return fitted(title, lambda line: cell(line["usage"]), gap=_GAP)
