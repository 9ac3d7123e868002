"""extender: what the HTTP extender has answered decides, and what it has not waits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.core.conf_error import ConfError
from app.core.plugins.extender import conf_of
from app.core.policy import Policies, Vote
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.eviction import EvictionAction
from app.model.gang import Gang
from app.model.http_extender import (
    FRESH_S,
    Answered,
    HttpExtenderConf,
    HttpExtenderFacts,
    Subject,
    Verb,
    VictimsAsked,
)
from app.model.ids import NodeName, PodUid, QueueName
from app.model.reason import Cause
from app.model.shape import PodShape
from app.model.snapshot import Snapshot
from tests.builders import make_amounts, make_node, make_queue, make_shape, make_snapshot
from tests.core.actions.rigs import Outcome, cycle, gang_of, members, newcomer, policies
from tests.core.contests import RECLAIM, cluster, contest, preemptor, runs, wants
from tests.core.plugins.sessions import open_plugin

NOW = 1_000_000.0
URL = "http://judge:8713"
AT = f"the HTTP extender at {URL}: "
YES, NO = Answered("", NOW), Answered("too warm", NOW)
NODES = [make_node(f"n{number}", cpu=8000) for number in range(3)]


def arguments(*verbs: Verb, **more: object) -> dict[str, object]:
    """The arguments of a plugin that asks for these verbs."""
    given: dict[str, object] = {f"extender.{verb}Verb": verb.value for verb in verbs}
    return {"extender.urlPrefix": URL} | given | {f"extender.{k}": v for k, v in more.items()}


def by(*verbs: Verb, switches: dict[str, bool] | None = None, **more: object) -> Policies:
    plugin = PluginConf("extender", switches or {}, arguments(*verbs, **more))
    return policies((("priority", "gang"), ("predicates", plugin)))


def subject(gang: Gang) -> Subject:
    return Subject(gang.key, gang.waiting[0].shape)


def plan(gang: Gang, facts: HttpExtenderFacts, *verbs: Verb, **more: Any) -> Outcome:
    """On three nodes of 8 cores, ``n0`` to ``n2``."""
    return cycle(gang, nodes=NODES, by=by(*verbs, **more), now=NOW, http_extender=facts)


def nodes_of(gang: Gang, **by_node: Answered[str]) -> HttpExtenderFacts:
    return HttpExtenderFacts(
        nodes={subject(gang): {NodeName(name): each for name, each in by_node.items()}}
    )


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, HttpExtenderConf("", {})),
        (
            {"extender.urlPrefix": " http://judge/v1// "},
            HttpExtenderConf("http://judge/v1", {}),
        ),
        (
            arguments(Verb.PREDICATE, httpTimeout="100ms", ignorable="true"),
            HttpExtenderConf(URL, {Verb.PREDICATE: "predicate"}, timeout_s=0.1, ignorable=True),
        ),
        (
            {"extender.urlPrefix": URL, "extender.jobReadyVerb": "/ready/", "extender.ignorable": 0}
            | {"extender.ignorable": False, "extender.predicateVerb": " "},
            HttpExtenderConf(URL, {Verb.READY: "ready"}),
        ),
        (
            {"extender.managedResources": ["example.com/a", " example.com/b "]},
            HttpExtenderConf("", {}, managed=frozenset({"example.com/a", "example.com/b"})),
        ),
        (
            {"extender.managedResources": "example.com/a, example.com/b,"},
            HttpExtenderConf("", {}, managed=frozenset({"example.com/a", "example.com/b"})),
        ),
    ],
    ids=["none", "url", "verb", "path", "list", "text"],
)
def test_arguments_are_read_as_volcano_reads_them(
    given: dict[str, object], found: HttpExtenderConf
) -> None:
    assert conf_of(PluginConf("extender", arguments=given)) == found


@pytest.mark.parametrize("verb", Verb)
def test_each_verb_has_an_argument(verb: Verb) -> None:
    conf = conf_of(PluginConf("extender", arguments=arguments(verb)))
    assert conf.address(verb) == f"{URL}/{verb}"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("urlPrefix", "judge:8713", "'judge:8713' is no http or https URL"),
        ("urlPrefix", "", "'' is no http or https URL"),
        ("urlPrefix", "http://judge:port", "'http://judge:port' is no http or https URL"),
        ("urlPrefix", "http://a:b@judge", "only scheme, host, port and path may be given"),
        ("urlPrefix", "http://judge?a=b", "only scheme, host, port and path may be given"),
        ("urlPrefix", 8713, "8713 is not text"),
        ("httpTimeout", "soon", "'soon' is not a positive duration such as 1h30m"),
        ("httpTimeout", 5, "5 is not a positive duration such as 1h30m"),
        ("httpTimeout", "-1s", "'-1s' is not a positive duration such as 1h30m"),
        ("ignorable", "perhaps", "'perhaps' is not true or false"),
        ("managedResources", {"a": 1}, "{'a': 1} is no list of names, nor a text with commas"),
        ("managedResources", [1], "[1] is no list of names, nor a text with commas"),
        ("predicateVerb", ["predicate"], "['predicate'] is not text"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused_with_its_key(
    key: str, value: object, said: str
) -> None:
    given = arguments(Verb.PREDICATE) | {f"extender.{key}": value}
    conf = SchedulerConf((), ((PluginConf("extender", arguments=given),),))
    with pytest.raises(ConfError) as refused:
        build(conf)
    assert str(refused.value) == f"plugin extender: argument extender.{key}: {said}"


def test_no_argument_of_volcano_is_without_effect() -> None:
    given = arguments(*Verb, httpTimeout="1s", ignorable=False, managedResources=[])
    built = build(SchedulerConf((), ((PluginConf("extender", arguments=given),),)))
    assert built.conf.warnings == ()


# --- predicate -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "node"),
    [
        ({"n1": YES}, "n1"),
        ({"n0": NO, "n1": NO, "n2": YES}, "n2"),
        ({"n1": Answered("", NOW - FRESH_S)}, "n1"),
        ({"n1": Answered("", NOW - FRESH_S - 1)}, None),
        ({"n1": Answered("", NOW, problem="passed over")}, "n1"),
        ({"n1": NO}, None),
        ({}, None),
    ],
    ids=str,
)
def test_members_go_where_the_extender_allows_it(
    known: dict[str, Answered[str]], node: str | None
) -> None:
    gang = gang_of("g", 1)
    placed = plan(gang, nodes_of(gang, **known), Verb.PREDICATE)
    assert placed.nodes("g") == ({} if node is None else {"g-0": node})


def test_a_gang_waits_for_answers_with_a_reason_that_names_the_server() -> None:
    gang = gang_of("g", 2)
    waits = plan(gang, HttpExtenderFacts(), Verb.PREDICATE)
    assert waits.refusal("g").cause is Cause.HTTP_EXTENDER
    assert waits.text("g") == (
        "0/3 nodes are available: 3 node(s) the HTTP extender has not answered about; "
        f"{AT}not asked yet"
    )


def test_the_reason_tells_why_the_server_does_not_answer() -> None:
    gang = gang_of("g", 1)
    failed: Answered[str] = Answered(None, NOW, problem="no answer within 1 s")
    waits = plan(gang, nodes_of(gang, n0=failed, n1=failed, n2=NO), Verb.PREDICATE)
    assert waits.text("g") == (
        "0/3 nodes are available: 2 node(s) the HTTP extender has not answered about, "
        f"1 node(s) the HTTP extender refuses; {AT}no answer within 1 s; {AT}too warm (1)"
    )


def test_the_reason_tells_the_commonest_answers() -> None:
    gang = gang_of("g", 1)
    other = Answered("too loud", NOW)
    waits = plan(gang, nodes_of(gang, n0=NO, n1=other, n2=NO), Verb.PREDICATE)
    assert waits.text("g") == (
        "0/3 nodes are available: 3 node(s) the HTTP extender refuses; "
        f"{AT}too warm (2), too loud (1)"
    )


def test_a_gang_gets_all_places_on_allowed_nodes_or_none() -> None:
    gang = gang_of("g", 2, cpu=5)
    assert plan(gang, nodes_of(gang, n0=YES), Verb.PREDICATE).nodes("g") == {}
    both = nodes_of(gang, n0=YES, n2=YES)
    assert plan(gang, both, Verb.PREDICATE).nodes("g") == {"g-0": "n0", "g-1": "n2"}


def test_an_answer_about_one_gang_says_nothing_of_another() -> None:
    asked, other = gang_of("asked", 1), gang_of("other", 1)
    placed = cycle(
        asked,
        other,
        nodes=NODES,
        by=by(Verb.PREDICATE),
        now=NOW,
        http_extender=nodes_of(asked, n1=YES),
    )
    assert placed.nodes("asked") == {"asked-0": "n1"}
    assert placed.nodes("other") == {}


def test_members_that_do_not_exist_yet_are_not_planned() -> None:
    gang = newcomer("g", cpu=1)
    waits = plan(gang, HttpExtenderFacts(), Verb.PREDICATE)
    assert waits.nodes("g") == {}
    liked = plan(gang, HttpExtenderFacts(), Verb.PRIORITIZE)
    assert liked.nodes("g")


@pytest.mark.parametrize(
    ("managed", "placed"),
    [([], False), (["example.com/card"], True), (["cpu"], False), ("cpu, memory", False)],
    ids=str,
)
def test_only_pods_that_ask_for_managed_resources_are_asked_about(
    managed: object, placed: bool
) -> None:
    gang = gang_of("g", 1)
    found = plan(
        gang, HttpExtenderFacts(), Verb.PREDICATE, Verb.PRIORITIZE, managedResources=managed
    )
    assert bool(found.nodes("g")) is placed


def test_a_pod_that_asks_for_a_managed_device_is_asked_about() -> None:
    shape = PodShape(make_amounts(cpu=1000, pods=1, **{"example.com/card": 1}))
    conf = conf_of(
        PluginConf("extender", arguments={"extender.managedResources": "example.com/card"})
    )
    assert conf.minds(shape)
    assert not conf.minds(make_shape(cpu=1000, memory=0))


def test_the_switch_for_predicates_turns_the_answers_about_nodes_off() -> None:
    gang = gang_of("g", 1)
    found = plan(gang, nodes_of(gang, n0=NO), Verb.PREDICATE, switches={"enablePredicate": False})
    assert found.nodes("g")


# --- prioritize ----------------------------------------------------------------------------------


def test_scores_are_added() -> None:
    gang = gang_of("g", 1)
    scores = {NodeName("n1"): 3.0, NodeName("n2"): 2.5}
    facts = HttpExtenderFacts(scores={subject(gang): Answered(scores, NOW)})
    assert plan(gang, facts, Verb.PRIORITIZE).nodes("g") == {"g-0": "n1"}


def test_a_gang_waits_for_scores() -> None:
    gang = gang_of("g", 1)
    assert plan(gang, HttpExtenderFacts(), Verb.PRIORITIZE).nodes("g") == {}
    failed: Answered[Mapping[NodeName, float]] = Answered(None, NOW, problem="HTTP 500")
    waits = plan(gang, HttpExtenderFacts(scores={subject(gang): failed}), Verb.PRIORITIZE)
    assert waits.text("g").endswith(f"{AT}HTTP 500")


# --- groups and queues ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "vote"),
    [
        (Answered(1, NOW), Vote.PERMIT),
        (Answered(0, NOW), Vote.ABSTAIN),
        (Answered(-1, NOW), Vote.REJECT),
        (Answered(1, NOW, problem="passed over"), Vote.PERMIT),
        (Answered(1, NOW - FRESH_S - 1), Vote.REJECT),
        (Answered(None, NOW, problem="HTTP 500"), Vote.REJECT),
        (None, Vote.REJECT),
    ],
    ids=str,
)
def test_groups_are_admitted_by_the_answer(answer: Answered[int] | None, vote: Vote) -> None:
    gang = newcomer("g", cpu=1)
    facts = HttpExtenderFacts(enqueueable={gang.key: answer} if answer else {})
    snapshot = make_snapshot(gangs=(gang,), http_extender=facts)
    hooks, _ = open_plugin("extender", snapshot, now=NOW, arguments=arguments(Verb.ENQUEUEABLE))
    assert hooks.enqueueable is not None
    assert hooks.enqueueable(gang).vote is vote


def test_a_group_that_is_not_admitted_is_told_why() -> None:
    gang = newcomer("g", cpu=1)
    facts = HttpExtenderFacts(enqueueable={gang.key: Answered(-1, NOW)})
    waits = plan(gang, facts, Verb.ENQUEUEABLE)
    assert waits.admitted == []
    assert waits.refusal("g").cause is Cause.HTTP_EXTENDER
    assert waits.text("g") == f"{AT}the group is not admitted"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answered(False, NOW), None),
        (Answered(True, NOW), "queue default is used up"),
        (Answered(False, NOW, problem="passed over"), None),
        (Answered(None, NOW, problem="HTTP 500"), "HTTP 500"),
        (None, "not asked yet"),
    ],
    ids=str,
)
def test_a_queue_that_is_overused_gets_no_more_places(
    answer: Answered[bool] | None, why: str | None
) -> None:
    gang = gang_of("g", 1)
    facts = HttpExtenderFacts(overused={QueueName("default"): answer} if answer else {})
    found = plan(gang, facts, Verb.OVERUSED)
    assert bool(found.nodes("g")) is (why is None)
    if why is not None:
        assert found.text("g") == f"{AT}{why}"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answered(True, NOW), None),
        (Answered(False, NOW), "the group is not ready"),
        (Answered(None, NOW, problem="HTTP 500"), "HTTP 500"),
        (None, "not asked yet"),
    ],
    ids=str,
)
def test_a_group_that_is_not_ready_gets_no_places(
    answer: Answered[bool] | None, why: str | None
) -> None:
    gang = gang_of("g", 1)
    facts = HttpExtenderFacts(ready={gang.key: answer} if answer else {})
    found = plan(gang, facts, Verb.READY)
    assert bool(found.nodes("g")) is (why is None)
    if why is not None:
        assert found.text("g").endswith(f"{AT}{why}")
    off = plan(gang, facts, Verb.READY, switches={"enableJobReady": False})
    assert off.nodes("g")


# --- victims -------------------------------------------------------------------------------------


def judged(new: Gang, answer: Answered[bool] | None, *, verb: Verb = Verb.PREEMPTABLE) -> Snapshot:
    by = VictimsAsked(new.key, verb)
    facts = HttpExtenderFacts(victims={by: {PodUid("g-0"): answer}} if answer else {})
    runner = runs("g", pod={"uid": PodUid("g-0")})
    return replace(cluster(runner, waits=(new,)), http_extender=facts)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answered(True, NOW), None),
        (Answered(False, NOW), False),
        (Answered(False, NOW - FRESH_S - 1), None),
        (None, None),
    ],
    ids=str,
)
def test_pods_stay_that_the_extender_does_not_let_go(
    answer: Answered[bool] | None, said: bool | None
) -> None:
    new = wants()
    given = arguments(Verb.PREEMPTABLE)
    game = contest("extender", judged(new, answer), now=NOW, arguments=given)
    assert game.preempts(new, "g-0") is said
    assert game.hooks.reclaimable is None
    assert game.asks(game.hooks.unified_evictable, preemptor(new), "g-0") is said
    gang_reclaim = preemptor(new, EvictionAction.GANG_RECLAIM)
    assert game.asks(game.hooks.unified_evictable, gang_reclaim, "g-0") is None


def test_what_may_be_reclaimed_is_asked_by_a_verb_of_its_own() -> None:
    new = wants()
    given = arguments(Verb.RECLAIMABLE)
    answered = judged(new, Answered(False, NOW), verb=Verb.RECLAIMABLE)
    game = contest("extender", answered, now=NOW, arguments=given)
    assert game.hooks.preemptable is None
    assert game.reclaims(new, "g-0") is False
    assert game.asks(game.hooks.unified_evictable, preemptor(new, RECLAIM), "g-0") is False


@pytest.mark.parametrize("verb", [Verb.PREEMPTABLE, Verb.RECLAIMABLE])
def test_an_answer_to_one_verb_says_nothing_of_the_other(verb: Verb) -> None:
    new = wants()
    given = arguments(Verb.PREEMPTABLE, Verb.RECLAIMABLE)
    answered = judged(new, Answered(False, NOW), verb=verb)
    game = contest("extender", answered, now=NOW, arguments=given)
    preempts, reclaims = game.preempts(new, "g-0"), game.reclaims(new, "g-0")
    assert (preempts, reclaims) == ((False, None) if verb is Verb.PREEMPTABLE else (None, False))


def test_a_pod_that_stays_for_one_group_may_go_for_another() -> None:
    new, other = wants(), wants("other")
    given = arguments(Verb.PREEMPTABLE)
    game = contest("extender", judged(new, Answered(False, NOW)), now=NOW, arguments=given)
    assert game.preempts(other, "g-0") is None


def test_without_a_verb_the_plugin_takes_part_in_nothing() -> None:
    snapshot = make_snapshot(queues=(make_queue("q"),))
    hooks, _ = open_plugin("extender", snapshot, now=NOW, arguments={"extender.urlPrefix": URL})
    fields = ("node_rules", "node_score", "place_class", "enqueueable", "overused", "allocatable")
    assert all(getattr(hooks, name) is None for name in fields)
    assert hooks.preemptable is hooks.reclaimable is hooks.unified_evictable is None


def test_members_of_one_shape_are_judged_alike() -> None:
    shape = make_shape(cpu=1000, memory=0)
    gang = gang_of("g", 1)
    gang = replace(gang, waiting=members("g", 3, shape=shape), min_member=3)
    facts = nodes_of(gang, n1=YES)
    assert set(plan(gang, facts, Verb.PREDICATE).nodes("g").values()) == {"n1"}
