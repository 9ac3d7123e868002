"""How what plugins want on other nodes is combined."""

import numpy as np

from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import Hooks, Policies
from app.core.tiers import open_policies
from app.core.victim_rules import VictimTasks
from app.model.conf import PluginConf, SchedulerConf
from tests.core.contests import cluster, runs

THREE = cluster(*(runs(name) for name in "abc"))


def wants(name: str, *positions: int) -> Hooks:
    """A plugin that wants those pods elsewhere, of all that it is asked about."""

    def wanted(rows: object) -> list[int]:
        assert list(rows) == [0, 1, 2]  # type: ignore[call-overload]
        return list(positions)

    nowhere = np.zeros(0, dtype=np.bool_)
    return Hooks(victim_tasks=VictimTasks(name, wanted, lambda _: None, lambda _: nowhere))


def opened(*tiers: tuple[Hooks, ...], off: bool = False) -> Opened:
    """With ``off`` the first plugin is switched off."""
    switches = {"enabledVictim": False} if off else {}
    configured = [
        [
            (PluginConf(f"{i}-{k}", switches=switches if i == k == 0 else {}), lambda _, h=h: h)
            for k, h in enumerate(tier)
        ]
        for i, tier in enumerate(tiers)
    ]
    policies = Policies(conf=SchedulerConf(actions=(), tiers=()), tiers=configured)
    return open_policies(policies, Ledger(THREE), now=0.0)


def found(*tiers: tuple[Hooks, ...], off: bool = False) -> list[tuple[int, str]]:
    wanted = opened(*tiers, off=off).victim_tasks
    assert wanted is not None
    return [(at, plugin.name) for at, plugin in wanted(np.arange(3))]


def test_what_the_plugins_of_a_tier_want_is_taken_together_each_pod_once() -> None:
    assert found((wants("x", 2, 0), wants("y", 0, 1))) == [(2, "x"), (0, "x"), (1, "y")]


def test_the_first_tier_that_wants_some_pod_decides() -> None:
    assert found((wants("x"),), (wants("y", 1),), (wants("z", 2),)) == [(1, "y")]


def test_a_plugin_that_is_switched_off_wants_no_pod() -> None:
    assert found((wants("x", 0), wants("y", 1)), off=True) == [(1, "y")]


def test_without_such_a_plugin_no_pod_is_wanted_elsewhere() -> None:
    assert opened((Hooks(),)).victim_tasks is None
