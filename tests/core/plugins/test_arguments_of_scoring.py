"""nodeorder, binpack and predicates: arguments become weights and switches."""

import pytest
import yaml

from app.core.conf_error import ConfError
from app.core.plugins.catalogue import ACTIONS, arguments_of_action
from app.core.policy import Predicates, Scoring
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.wire.scheduler_conf import parse_scheduler_conf
from tests.builders import make_snapshot
from tests.core.plugins.sessions import open_plugin

RULES = (
    *("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits"),
    *("VolumeZone", "PodTopologySpread", "VolumeBinding"),
)
SEARCHING = ("allocate", "backfill", "preempt", "reclaim")
SCORES = (
    *("leastrequested", "mostrequested", "nodeaffinity", "podaffinity", "balancedresource"),
    *("tainttoleration", "imagelocality", "podtopologyspread"),
)


def scoring(plugin: str, **arguments: object) -> Scoring | None:
    given = {key.replace("__", "/").replace("_", "."): value for key, value in arguments.items()}
    hooks, _ = open_plugin(plugin, make_snapshot(), arguments=given)
    return hooks.scoring


def weights(scoring_: Scoring | None) -> dict[str, object]:
    assert scoring_ is not None
    return {name: getattr(scoring_, name) for name in Scoring.__slots__}


def test_nodeorder_has_volcanos_weights() -> None:
    assert weights(scoring("nodeorder")) == {
        "least_requested": 1,
        "most_requested": 0,
        "balanced": 1,
        "node_affinity": 2,
        "pod_affinity": 2,
        "taint_toleration": 3,
        "image_locality": 1,
        "topology_spread": 2,
        "binpack_weight": 0,
        "binpack": {},
    }


@pytest.mark.parametrize(
    ("argument", "field"),
    [
        ("leastrequested_weight", "least_requested"),
        ("mostrequested_weight", "most_requested"),
        ("balancedresource_weight", "balanced"),
        ("nodeaffinity_weight", "node_affinity"),
        ("podaffinity_weight", "pod_affinity"),
        ("tainttoleration_weight", "taint_toleration"),
        ("imagelocality_weight", "image_locality"),
        ("podtopologyspread_weight", "topology_spread"),
    ],
)
@pytest.mark.parametrize("value", [7, "7", 7.0, " 7 "])
def test_nodeorder_reads_its_weights(argument: str, field: str, value: object) -> None:
    assert weights(scoring("nodeorder", **{argument: value}))[field] == 7


@pytest.mark.parametrize("value", ["heavy", 1.5, True, [1], float("nan")])
def test_a_weight_that_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ConfError) as caught:
        scoring("nodeorder", leastrequested_weight=value)
    assert str(caught.value) == (
        f"plugin nodeorder: argument leastrequested.weight: {value!r} is not a whole number"
    )


def test_binpack_weighs_cpu_and_memory_alike() -> None:
    found = scoring("binpack")
    assert found
    assert found.binpack_weight == 1
    assert found.least_requested == 0
    assert found.binpack == {"cpu": 1, "memory": 1}


def test_binpack_of_a_negative_weight_spreads() -> None:
    found = scoring("binpack", binpack_weight=-2)
    assert found
    assert found.binpack_weight == -2


def test_cpu_and_memory_keep_their_weights_among_the_further_resources() -> None:
    found = scoring(
        "binpack", binpack_cpu=5, binpack_resources="cpu,memory", binpack_resources_memory=3
    )
    assert found
    assert found.binpack == {"cpu": 5, "memory": 1}


def test_binpack_reads_further_resources_and_takes_negative_weights_as_one() -> None:
    found = scoring(
        "binpack",
        binpack_weight="10",
        binpack_cpu=-5,
        binpack_memory=0,
        binpack_resources="nvidia.com/gpu, example.com/foo",
        binpack_resources_nvidia_com__gpu=2,
    )
    assert found
    assert found.binpack_weight == 10
    assert found.binpack == {"cpu": 1, "memory": 0, "nvidia.com/gpu": 2, "example.com/foo": 1}


def test_binpack_of_weight_zero_does_not_score() -> None:
    assert scoring("binpack", binpack_weight=0) is None


def test_binpack_resources_must_be_text() -> None:
    with pytest.raises(ConfError) as caught:
        scoring("binpack", binpack_resources=["cpu"])
    assert str(caught.value) == ("plugin binpack: argument binpack.resources: ['cpu'] is not text")


def test_predicates_are_all_on_unless_switched_off() -> None:
    hooks, _ = open_plugin("predicates", make_snapshot())
    assert hooks.predicates == Predicates()


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("NodeAffinity", "node_affinity"),
        ("NodePorts", "node_ports"),
        ("TaintToleration", "taints"),
        ("PodAffinity", "pod_affinity"),
        ("PodTopologySpread", "topology_spread"),
    ],
)
@pytest.mark.parametrize("value", [False, "false", "0", "F"])
def test_each_predicate_has_its_switch(rule: str, field: str, value: object) -> None:
    hooks, _ = open_plugin(
        "predicates", make_snapshot(), arguments={f"predicate.{rule}Enable": value}
    )
    assert hooks.predicates == Predicates(**{field: False})


def test_a_switch_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(ConfError) as caught:
        open_plugin("predicates", make_snapshot(), arguments={"predicate.NodePortsEnable": "off"})
    assert str(caught.value) == (
        "plugin predicates: argument predicate.NodePortsEnable: 'off' is not true or false"
    )


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        (
            "predicates",
            [f"predicate.{rule}Enable" for rule in RULES] + ["predicate.CacheEnable"],
        ),
        (
            "predicates",
            [
                *("volumebinding.weight", "volumebinding.bindTimeoutSeconds"),
                "dynamicresources.filterTimeoutSeconds",
            ],
        ),
        (
            "capacity",
            ["capacity.DynamicResourceAllocationEnable", "capacity.DRAConsumableCapacityEnable"],
        ),
        ("nodeorder", [f"{score}.weight" for score in SCORES]),
        ("binpack", ["binpack.weight", "binpack.cpu", "binpack.memory"]),
        ("capacity", ["ancestorReclaimLevel"]),
    ],
)
def test_arguments_of_volcano_are_read_as_number_and_as_text(
    plugin: str, arguments: list[str]
) -> None:
    for value in (1, "1"):
        of = str(value) if any(each.endswith("Enable") for each in arguments) else value
        given = PluginConf(plugin, arguments=dict.fromkeys(arguments, of))
        conf = SchedulerConf(actions=("allocate",), tiers=((given,),))
        assert build(conf).conf.warnings == ()


def test_a_bad_cache_switch_is_refused() -> None:
    with pytest.raises(ConfError, match=r"predicate\.CacheEnable: 'off' is not true or false"):
        open_plugin("predicates", make_snapshot(), arguments={"predicate.CacheEnable": "off"})


@pytest.mark.parametrize(
    ("action", "key", "value"),
    [
        *((each, "predicateErrorCacheEnable", "off") for each in SEARCHING),
        ("preempt", "enableTopologyAwarePreemption", 2),
        ("preempt", "topologyAwarePreemptWorkerNum", "many"),
        ("preempt", "minCandidateNodesPercentage", 1.5),
        ("preempt", "minCandidateNodesAbsolute", -1),
        ("preempt", "maxCandidateNodesAbsolute", True),
    ],
)
def test_a_bad_bound_of_a_search_is_refused(action: str, key: str, value: object) -> None:
    conf = SchedulerConf(actions=(action,), tiers=(), action_arguments={action: {key: value}})
    with pytest.raises(ConfError, match=f"action {action}: argument {key}: "):
        build(conf)


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_no_argument_that_an_action_has_in_volcano_is_without_effect(action: str) -> None:
    """Those that bound Volcano's search hold with any value: Pumice looks at all nodes."""
    arguments = dict.fromkeys(arguments_of_action(action), "1")
    given = yaml.safe_dump([{"name": action, "arguments": arguments}])
    conf = build(parse_scheduler_conf(f"actions: {action}\nconfigurations:\n{given}"))
    assert conf.conf.warnings == ()
