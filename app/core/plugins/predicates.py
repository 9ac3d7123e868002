"""predicates: turns rules about the nodes of a pod on and off, such as taints and volumes."""

from app.core.arguments import Arguments
from app.core.placement.claim_books import ClaimBooks
from app.core.placement.claim_rule import ClaimRule
from app.core.placement.volume_rules import ReachByTable, VolumeRules
from app.core.policy import Hooks, OpenPlugin, PlaceClass, Predicates, Session
from app.model.conf import PluginConf
from app.model.exchange import Exchange
from app.model.gang import Gang, Task


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


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the ``predicate.<Rule>Enable`` switches, all on by default.

    ``predicate.CacheEnable`` is checked only: what is remembered of nodes never changes an answer.
    """
    arguments = Arguments(conf)
    arguments.flag("predicate.CacheEnable", default=True)

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
        facts = session.ledger.snapshot.claimed_devices if looks_at_claims else None
        if facts is None:
            return Hooks(
                predicates=predicates,
                node_rules=volumes.rules or None,
                place_class=volumes.place_class,
            )
        claims = ClaimRule(ClaimBooks(session.ledger, facts), session.ledger.snapshot.table)
        return Hooks(
            predicates=predicates,
            node_rules=[*volumes.rules, claims.rule()],
            place_class=_both(volumes.place_class, claims.place_class),
        )

    return open_


def _both(one: PlaceClass, other: PlaceClass) -> PlaceClass:
    """The class of a place that has to be of both."""

    def place_class(gang: Gang, task: Task, row: int) -> Exchange:
        return one(gang, task, row).narrowed(other(gang, task, row))

    return place_class
