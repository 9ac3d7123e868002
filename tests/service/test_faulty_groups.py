"""A plugin that fails at one group: it is left out and told, and all others have their places."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from app.core.planner import plan
from app.core.policy import Hooks
from app.core.tiers import build
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.plan import GangPlacement
from app.model.reason import Cause
from app.model.topology import HyperNode
from app.model.workload import GroupPhase
from app.service.cycle.changed_domains import GiveBackTorn
from app.service.cycle.expiry import Expiry
from app.service.cycle.faulty_groups import TRIES
from app.telemetry import metrics
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance
from tests.topology import hard, node_names


class Plugin:
    """Fails at groups of these names, and counts how often."""

    def __init__(self, *names: str) -> None:
        self.names = {f"default/{name}" for name in names}
        self.failures = 0

    def valid(self, gang: Gang) -> Any:
        """Ask about one group."""
        if gang.key in self.names:
            self.failures += 1
            raise KeyError(f"secret {gang.key}")


def rig_with(plugin: Plugin) -> Rig:
    """A node, and the plugin before all others."""
    rig = Rig()
    rig.node("n1", cpu=4000)
    use(rig, plugin)
    return rig


def use(rig: Rig, plugin: Plugin, point: str = "gang_valid") -> None:
    """Other policies are in force: the plugin is asked at that point."""
    configuration = rig.planning.cycle.input.configuration
    policies = build(configuration.policies.conf)
    hooks: dict[str, Any] = {point: plugin.valid}
    tier = [(PluginConf("broken"), lambda _session: Hooks(**hooks))]
    configuration.policies = replace(policies, tiers=[tier, *policies.tiers])


async def test_all_others_have_their_places_and_the_group_is_told() -> None:
    rig = rig_with(Plugin("bad"))
    before = metrics.PLANNING_FAULTS._value.get()
    failures = metrics.CYCLE_FAILURES._value.get()
    rig.gang("bad", size=2)
    rig.gang("good", size=2)
    with working(rig):
        await advance(0.5)
        assert (rig.place("good-0"), rig.place("good-1")) == ("n1", "n1")
        assert rig.refusals[rig.key("bad")].cause is Cause.PLANNING_FAILED
        assert "secret" not in rig.refusals[rig.key("bad")].detail
        assert rig.has_reservations() == 2
        await advance(2)
        told = [e for e in rig.api.events if e.about.endswith("bad")]
        assert any("planning failed at this group" in event.message for event in told)
    assert metrics.PLANNING_FAULTS._value.get() > before
    assert metrics.CYCLE_FAILURES._value.get() == failures


async def test_it_is_tried_again_later_and_later_and_in_the_end_when_it_changes() -> None:
    plugin = Plugin("bad")
    rig = rig_with(plugin)
    rig.gang("bad", size=1)
    with working(rig):
        await advance(8)
        assert 3 <= plugin.failures <= 5
        await advance(1500)
        assert plugin.failures == TRIES
        rig.group("bad", minimum=1, resource_version="2", priority_class="none")
        await advance(2)
        assert plugin.failures == TRIES + 1


async def test_it_has_its_place_as_soon_as_planning_does_not_fail_any_more() -> None:
    plugin = Plugin("bad")
    rig = rig_with(plugin)
    rig.gang("bad", size=1)
    with working(rig):
        await advance(1)
        plugin.names.clear()
        await advance(4)
        assert rig.place("bad-0") == "n1"
        assert rig.key("bad") not in rig.refusals


async def test_another_configuration_lets_it_be_planned_at_once() -> None:
    plugin = Plugin("bad")
    rig = rig_with(plugin)
    rig.gang("bad", size=1)
    with working(rig):
        await advance(20)
        use(rig, Plugin())
        await advance(2)
        assert rig.place("bad-0") == "n1"


async def test_filter_answers_for_it_and_plans_it_no_more(caplog: pytest.LogCaptureFixture) -> None:
    plugin = Plugin("bad")
    rig = rig_with(plugin)
    rig.gang("bad", size=1)
    rig.gang("good", size=1)
    first = rig.filter("bad-0")
    assert first == rig.filter("bad-0")
    assert plugin.failures == 1
    rig.filter("good-0")
    assert rig.place("good-0") == "n1"
    [logged] = [each for each in caplog.records if each.exc_info]
    assert logged.levelno == logging.ERROR


async def test_the_log_has_one_traceback_of_an_error_at_many_groups(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = [f"bad{number}" for number in range(3)]
    rig = rig_with(Plugin(*names))
    for name in names:
        rig.gang(name, size=1)
    with working(rig):
        await advance(20)
    assert len([each for each in caplog.records if each.exc_info]) == 1


async def test_a_group_that_a_plugin_fails_at_when_its_places_are_confirmed_gets_none() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    for name in ("bad", "good"):
        rig.group(name, minimum=1, phase=GroupPhase.PENDING)
        rig.pod(name, group=name)
    token = rig.planning.cycle.input.token(rig.clock())
    decided = plan(token.snapshot, token.policies, now=rig.clock(), shapes=None)
    assert len(decided.placed) == 2
    use(rig, Plugin("bad"), "enqueued")
    rig.planning.publisher.publish(decided, token, now=rig.clock())
    assert (rig.place("good"), rig.place("bad")) == ("n1", "")
    await rig.cycle()
    assert rig.refusals[rig.key("bad")].cause is Cause.PLANNING_FAILED


async def test_upkeep_that_fails_is_told_and_the_groups_have_their_places(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_queue: object) -> Any:
        raise KeyError("secret")

    rig = Rig()
    rig.node("n1", cpu=4000)
    configuration = rig.planning.cycle.input.configuration
    policies = configuration.policies
    tier = [(PluginConf("broken"), lambda _session: Hooks(queue_shares=fails))]
    configuration.policies = replace(policies, tiers=[tier, *policies.tiers])
    before = metrics.UPKEEP_FAULTS.labels("loans")._value.get()
    failures = metrics.CYCLE_FAILURES._value.get()
    rig.gang("good", size=2)
    with caplog.at_level(logging.INFO, "app.service.cycle.failing_parts"):
        await rig.cycle()
        assert (rig.place("good-0"), rig.place("good-1")) == ("n1", "n1")
        [notice] = rig.planning.cycle.input.faulty.notices()
        rig.gang("more", size=1)
        await rig.cycle()
        configuration.policies = policies
        rig.gang("last", size=1)
        await rig.cycle()
    assert notice.startswith("planning does without loans, which fails by an unexpected error: ")
    assert "secret" not in notice
    assert rig.planning.cycle.input.faulty.notices() == ()
    assert [record.message.partition(" ")[0] for record in caplog.records] == ["planning", "an"]
    assert metrics.UPKEEP_FAULTS.labels("loans")._value.get() - before == 2
    assert metrics.CYCLE_FAILURES._value.get() == failures


def fails(*_: object) -> Any:
    """A plugin, or a part of a cycle, that fails."""
    raise KeyError("secret")


async def test_a_plugin_that_cannot_be_opened_is_told_and_places_are_given_when_it_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    configuration = rig.planning.cycle.input.configuration
    policies = configuration.policies
    rig.gang("first", size=1)
    await rig.cycle()
    broken = [(PluginConf("broken"), fails)]
    configuration.policies = replace(policies, tiers=[broken, *policies.tiers])
    before = metrics.PLUGIN_FAULTS.labels("broken")._value.get()
    failures = metrics.CYCLE_FAILURES._value.get()
    rig.gang("good", size=2)
    with caplog.at_level(logging.INFO, "app.service.cycle.failing_parts"):
        await rig.cycle()
        assert rig.place("first-0") == "n1"
        assert rig.place("good-0") == ""
        told = rig.refusals[rig.key("good")]
        assert told.cause is Cause.PLANNING_FAILED
        assert "secret" not in told.detail
        notices = rig.planning.cycle.input.faulty.notices()
        assert any(
            each.startswith("plugin broken fails by an unexpected error, no group gets a place: ")
            for each in notices
        )
        assert rig.filter("good-0") == rig.filter("good-0")
        configuration.policies = policies
        rig.gang("more", size=1)
        await rig.cycle()
    assert (rig.place("good-0"), rig.place("good-1")) == ("n1", "n1")
    assert rig.planning.cycle.input.faulty.notices() == ()
    assert "a plugin could not be opened" in caplog.messages
    assert metrics.PLUGIN_FAULTS.labels("broken")._value.get() > before
    assert metrics.CYCLE_FAILURES._value.get() == failures


async def test_give_back_that_fails_is_told_and_tried_again_and_others_have_their_places() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    rig.group("held", minimum=2, queue=QueueName("small"))
    rig.pod("held-0", group="held")
    rig.pod("held-1", group="held")
    await rig.cycle()
    assert rig.place("held-0") == "n1"
    configuration = rig.planning.cycle.input.configuration
    policies = configuration.policies
    broken = [(PluginConf("broken"), lambda _session: Hooks(excess=fails))]
    configuration.policies = replace(policies, tiers=[broken, *policies.tiers])
    failures = metrics.CYCLE_FAILURES._value.get()
    before = metrics.UPKEEP_FAULTS.labels("overLimit")._value.get()
    rig.queue(make_queue("small", capability=make_amounts(cpu=1000)))
    rig.gang("good", size=1)
    await rig.cycle()
    assert rig.place("good-0") == "n1"
    [notice] = rig.planning.cycle.input.faulty.notices()
    assert notice.startswith("planning does without overLimit, ")
    configuration.policies = policies
    await rig.cycle()
    assert rig.place("held-0") == ""
    assert rig.planning.cycle.input.faulty.notices() == ()
    assert metrics.UPKEEP_FAULTS.labels("overLimit")._value.get() - before == 1
    assert metrics.CYCLE_FAILURES._value.get() == failures


async def test_a_look_for_unused_reservations_that_fails_ends_no_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.gang("good", size=1)
    monkeypatch.setattr(Expiry, "expire", fails)
    await rig.cycle()
    assert rig.place("good-0") == "n1"
    [notice] = rig.planning.cycle.input.faulty.notices()
    assert notice.startswith("planning does without expiry, ")


async def test_a_look_for_torn_gangs_that_fails_ends_no_cycle_and_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.group("held", minimum=1, topology=hard(1))
    rig.pod("held-0", group="held")
    rig.see("hypernodes", HyperNode("a", 1, members=node_names("n1")))
    await rig.cycle()
    assert rig.place("held-0") == "n1"
    with monkeypatch.context() as patched:
        patched.setattr(GiveBackTorn, "_is_torn", fails)
        rig.see("hypernodes", HyperNode("a", 1, members=node_names("n2")))
        rig.gang("good", size=1)
        await rig.cycle()
        assert rig.place("good-0") == "n1"
        [notice] = rig.planning.cycle.input.faulty.notices()
        assert notice.startswith("planning does without torn, ")
    await rig.cycle()
    assert rig.place("held-0") == ""


async def test_all_others_are_told_of_a_cycle_that_one_fails_at() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.gang("good", size=1)
    told: list[object] = []
    rig.planning.cycle.after[:] = [fails, told.extend]
    with pytest.raises(ExceptionGroup, match="not all were told"):
        await rig.cycle()
    assert rig.key("good") in told
    assert rig.place("good-0") == "n1"
    told.clear()
    rig.planning.cycle.after[:] = [told.extend]
    rig.gang("more", size=1)
    await rig.cycle()
    assert rig.key("good") in told


async def test_a_group_whose_places_cannot_be_taken_keeps_no_other_from_its_places() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    rig.gang("bad", size=1)
    rig.gang("good", size=1)

    def told(decided: GangPlacement) -> None:
        if decided.gang == rig.key("bad"):
            raise KeyError("secret")

    rig.planning.publisher.told.insert(0, told)
    failures = metrics.CYCLE_FAILURES._value.get()
    await rig.cycle()
    assert rig.place("good-0") == "n1"
    assert metrics.CYCLE_FAILURES._value.get() == failures
