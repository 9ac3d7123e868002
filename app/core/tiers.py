"""From a configuration to one set of answers.

:func:`build` checks the configuration once; :func:`open_policies` opens its plugins on a cycle's
ledger. How their hooks are combined is the table of :mod:`app.core.points`.
"""

from dataclasses import replace

from app.core.arguments import Arguments, Noted
from app.core.combining import Gate, Opening
from app.core.conf_error import ConfError
from app.core.faults import PluginFault
from app.core.holders import Holders
from app.core.ledger import Ledger
from app.core.placement.engine import Placer
from app.core.placement.statics import ShapeCache
from app.core.plugins import catalogue
from app.core.points import Opened
from app.core.policy import Ballot, Hooks, OpenPlugin, Policies, Session, Vote
from app.model.conf import PluginConf, SchedulerConf
from app.model.eviction import EvictionAction, GangEviction


def build(conf: SchedulerConf) -> Policies:
    """The plugins of ``conf`` that there are, their arguments checked; raises ``ConfError``."""
    tiers: list[list[tuple[PluginConf, OpenPlugin]]] = []
    warnings = list(conf.warnings)
    for number, tier in enumerate(conf.tiers, start=1):
        configured: list[tuple[PluginConf, OpenPlugin]] = []
        for position, plugin in enumerate(tier, start=1):
            configure = catalogue.PLUGINS.get(plugin.name)
            if configure is None:
                continue
            arguments = Noted(plugin.arguments)
            configured.append((plugin, configure(replace(plugin, arguments=arguments))))
            warnings += [
                f"tier {number}, plugin {position} ({plugin.name}): argument {key} has no effect"
                for key in arguments.unread()
            ]
        tiers.append(configured)
    _reject_two_fair_shares(conf)
    for action in conf.actions:
        _check_search(action, conf)
    return Policies(
        conf=replace(conf, warnings=tuple(warnings)),
        tiers=tiers,
        gang_evictions={
            action: _gang_eviction(action, conf)
            for action in (EvictionAction.GANG_PREEMPT, EvictionAction.GANG_RECLAIM)
        },
    )


def _check_search(action: str, conf: SchedulerConf) -> None:
    """Check the arguments by which Volcano bounds its search, for which there is nothing to do."""
    given = conf.action_arguments.get(action, {})
    arguments = Arguments(PluginConf(action, arguments=given), owner="action")
    for key in sorted(catalogue.SEARCH_FLAGS.get(action, ())):
        arguments.flag(key, default=True)
    for key in sorted(catalogue.SEARCH_NUMBERS.get(action, ())):
        found = arguments.integer(key, 0)
        if found < 0:
            raise ConfError(f"action {action}: argument {key}: {found} is less than 0")


def _gang_eviction(action: EvictionAction, conf: SchedulerConf) -> GangEviction:
    given = conf.action_arguments.get(action.value, {})
    arguments = Arguments(PluginConf(action.value, arguments=given), owner="action")
    most = arguments.integer("maxDomains", 0)
    if most < 0:
        raise ConfError(f"action {action.value}: argument maxDomains: {most} is less than 0")
    return GangEviction(most or None, whole=arguments.flag("allowWholeBundle", default=True))


def open_policies(
    policies: Policies, ledger: Ledger, *, now: float, explain: bool = True
) -> Opened:
    """The combined answers of ``policies`` on ``ledger``; ``now`` is seconds since the epoch.

    ``explain``: refusals name the holders of what is short, for which all groups are looked at. A
    plugin that cannot be opened has no say; if it says more than what is better, no group is
    admitted and no member may have a place.
    """
    session = Session(ledger=ledger, conf=policies.conf, now=now)
    faults: dict[str, PluginFault] = {}
    left_out = [PluginConf(name) for name in catalogue.ALWAYS if policies.conf.plugin(name) is None]
    implied = [(conf, catalogue.PLUGINS[conf.name](conf)) for conf in left_out]
    configured = [
        [
            (conf, hooks)
            for conf, open_plugin in tier
            if (hooks := _open(conf, open_plugin, session, faults)) is not None
        ]
        for tier in (*policies.tiers, implied)
    ]
    fault = next((each for each in faults.values() if each.needed), None)
    if fault is not None:
        configured.insert(0, [(PluginConf(fault.plugin), _refusing(fault))])
    gate = Gate(ledger, holders=Holders(ledger) if explain else None)
    return Opened(
        configured,
        Opening(ledger, gate, now),
        policies.gang_evictions,
        faults=faults,
        fault=fault,
    )


def _open(
    conf: PluginConf, open_plugin: OpenPlugin, session: Session, faults: dict[str, PluginFault]
) -> Hooks | None:
    """What the plugin takes part in; None if that fails, which ``faults`` is told."""
    try:
        return open_plugin(session)
    except Exception as error:
        fault = PluginFault(conf.name, needed=conf.name not in catalogue.PREFERENCES)
        fault.__cause__ = error
        faults[conf.name] = fault
        return None


def _refusing(fault: PluginFault) -> Hooks:
    """What stands in for a plugin that could not be opened: it lets nothing happen."""
    refusal = fault.refusal
    return Hooks(
        enqueueable=lambda _gang: Ballot(Vote.REJECT, refusal),
        allocatable=lambda _queue, _task: refusal,
        permitted=lambda _queue, _task: refusal,
        preemptive=lambda _preemptor: refusal,
        starving=lambda _gang: False,
    )


def placer_on(
    ledger: Ledger, opened: Opened, *, shapes: ShapeCache | None, ahead: bool = False
) -> Placer:
    """What finds nodes on ``ledger`` by the rules and scores of ``opened``.

    ``shapes`` outlives cycles. ``ahead``: room that is about to be free counts as free.
    """
    return Placer(
        ledger,
        predicates=opened.predicates,
        scoring=opened.scoring,
        cache=shapes,
        node_rules=opened.node_rules,
        node_scores=opened.node_scores,
        ahead=ahead,
    )


def _reject_two_fair_shares(conf: SchedulerConf) -> None:
    drf, proportion = conf.plugin("drf"), conf.plugin("proportion")
    if drf is not None and drf.enabled("enableHierarchy") and proportion is not None:
        raise ConfError(
            "plugins proportion and drf with enableHierarchy conflict: both order the queues"
        )
