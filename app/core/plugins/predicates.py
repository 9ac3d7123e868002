"""predicates: turns rules about the nodes of a pod on and off, such as taints and volumes."""

from dataclasses import replace

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.placement.claim_books import ClaimBooks
from app.core.placement.claim_rule import ClaimRule
from app.core.placement.volume_rules import ReachByTable, VolumeRules
from app.core.placement.volume_scores import VolumeScores, shape_of
from app.core.policy import Hooks, OpenPlugin, PlaceClass, Predicates, Session
from app.model.conf import PluginConf
from app.model.exchange import Exchange
from app.model.gang import Gang, Task

_BIND_TIMEOUT = "volumebinding.bindTimeoutSeconds"
_SHAPE = "volumebinding.shape"


def rules_of(conf: PluginConf) -> Predicates:
    """Which of the rules are on; raises ``ConfError``."""
    arguments = Arguments(conf)

    def switch(rule: str) -> bool:
        return arguments.flag(f"predicate.{rule}Enable", default=True)

    return Predicates(
        node_affinity=switch("NodeAffinity"),
        node_ports=switch("NodePorts"),
        taints=switch("TaintToleration"),
        pod_affinity=switch("PodAffinity"),
        topology_spread=switch("PodTopologySpread"),
    )


def bind_timeout_of(conf: PluginConf) -> float | None:
    """How long kube-scheduler may take to bind volumes, in seconds; None: it is not said.

    Raises ``ConfError``.
    """
    seconds = Arguments(conf).integer(_BIND_TIMEOUT, -1)
    if seconds < 0 and conf.arguments.get(_BIND_TIMEOUT) not in (None, ""):
        raise ConfError(f"plugin predicates: argument {_BIND_TIMEOUT}: {seconds} is less than 0")
    return None if seconds < 0 else float(seconds)


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the ``predicate.<Rule>Enable`` switches, all on by default, and ``volumebinding.*``.

    ``predicate.CacheEnable`` and ``dynamicresources.filterTimeoutSeconds`` are checked only: what
    is remembered of nodes never changes an answer, and a search for devices is bounded by steps.
    """
    arguments = Arguments(conf)
    arguments.flag("predicate.CacheEnable", default=True)
    arguments.integer("dynamicresources.filterTimeoutSeconds", 10)
    bind_timeout_of(conf)
    weight = arguments.integer("volumebinding.weight", 1)
    if weight < 0:
        raise ConfError(f"plugin predicates: argument volumebinding.weight: {weight} is below 0")
    shape = shape_of(conf.arguments.get(_SHAPE), f"plugin predicates: argument {_SHAPE}")

    def switch(rule: str) -> bool:
        return arguments.flag(f"predicate.{rule}Enable", default=True)

    predicates = rules_of(conf)
    binding, zone = switch("VolumeBinding"), switch("VolumeZone")
    limits, reach = switch("NodeVolumeLimits"), ReachByTable()
    looks_at_claims = switch("DynamicResourceAllocation")

    def open_(session: Session) -> Hooks:
        volumes = VolumeRules(
            session.ledger,
            reach.of(session.ledger.snapshot.table),
            binding=binding,
            zone=zone,
            limits=limits,
        )
        scores = binding and volumes.rules and shape and weight
        hooks = Hooks(
            predicates=predicates,
            node_rules=volumes.rules or None,
            node_score=VolumeScores(volumes, shape, weight).score() if scores else None,
            place_class=volumes.place_class,
        )
        facts = session.ledger.snapshot.claimed_devices if looks_at_claims else None
        if facts is None:
            return hooks
        claims = ClaimRule(ClaimBooks(session.ledger, facts), session.ledger.snapshot.table)
        return replace(
            hooks,
            node_rules=[*volumes.rules, claims.rule()],
            place_class=_both(volumes.place_class, claims.place_class),
        )

    return open_


def _both(one: PlaceClass, other: PlaceClass) -> PlaceClass:
    """The class of a place that has to be of both."""

    def place_class(gang: Gang, task: Task, row: int) -> Exchange:
        return one(gang, task, row).narrowed(other(gang, task, row))

    return place_class
