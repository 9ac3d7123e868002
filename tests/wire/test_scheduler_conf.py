"""volcano-scheduler.conf as a value."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.conf_error import ConfError
from app.core.tiers import build
from app.model.conf import SchedulerConf
from app.model.load import Index, MetricsConf, MetricsType
from app.wire.scheduler_conf import DEFAULT_CONF, parse_scheduler_conf

ACTIONS = "allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle"

HELM = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

CI = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""


def names(text: str) -> list[list[str]]:
    return [[plugin.name for plugin in tier] for tier in parse_scheduler_conf(text).tiers]


def test_the_default_is_volcanos() -> None:
    conf = parse_scheduler_conf(DEFAULT_CONF)

    assert conf.actions == ("enqueue", "allocate", "backfill")
    assert names(DEFAULT_CONF) == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert conf.warnings == ()
    build(conf)


def test_the_configuration_of_the_helm_chart_is_read() -> None:
    conf = parse_scheduler_conf(HELM)
    gang = conf.plugin("gang")

    assert conf.warnings == ()
    assert gang is not None
    assert not gang.enabled("enablePreemptable")
    assert gang.enabled("enableReclaimable")
    assert names(HELM)[1][-1] == "binpack"
    build(conf)


def test_the_configuration_of_volcanos_own_tests_is_read() -> None:
    conf = parse_scheduler_conf(CI)
    predicates = conf.plugin("predicates")

    assert conf.actions == ("enqueue", "allocate", "backfill", "reclaim", "preempt")
    assert predicates is not None
    assert predicates.arguments == {"predicate.DynamicResourceAllocationEnable": True}
    assert conf.warnings == ()
    build(conf)


def test_text_that_tools_rewrote_means_the_same() -> None:
    conf = parse_scheduler_conf("""
actions: allocate,backfill
tiers:
- plugins:
  - {name: drf, enableHierarchy: "true", enablePreemptable: "false", enableJobOrder: null}
  - name: nodeorder
    arguments: {leastrequested.weight: "10"}
""")
    drf, nodeorder = conf.tiers[0]

    assert conf.actions == ("allocate", "backfill")
    assert drf.switches == {"enableHierarchy": True, "enablePreemptable": False}
    assert nodeorder.arguments == {"leastrequested.weight": "10"}
    assert build(conf).tiers


@pytest.mark.parametrize(
    ("written", "means"), [("y", True), ("Y", True), ("n", False), ("N", False), ("Off", False)]
)
def test_switches_may_be_short(written: str, means: bool) -> None:
    conf = parse_scheduler_conf(f"""
actions: allocate
tiers:
- plugins:
  - name: gang
    enablePreemptable: {written}
  - name: predicates
    arguments: {{predicate.NodePortsEnable: {written}}}
""")
    gang, predicates = conf.tiers[0]
    assert gang.switches == {"enablePreemptable": means}
    assert predicates.arguments == {"predicate.NodePortsEnable": means}


@pytest.mark.parametrize(
    "switch",
    [
        "enableJobOrder",
        "enableHierarchy",
        "enableJobReady",
        "enableJobPipelined",
        "enableTaskOrder",
        "enablePreemptable",
        "enableReclaimable",
        "enablePreemptive",
        "enableQueueOrder",
        "enabledClusterOrder",
        "enablePredicate",
        "enableBestNode",
        "enableNodeOrder",
        "enableTargetJob",
        "enableReservedNodes",
        "enableJobEnqueued",
        "enabledVictim",
        "enableJobStarving",
        "enabledOverused",
        "enabledAllocatable",
        "enabledHyperNodeOrder",
        "enabledSubJobReady",
        "enabledSubJobPipelined",
        "enabledSubJobOrder",
        "enabledHyperNodeGradient",
    ],
)
def test_every_switch_of_volcano_is_kept(switch: str) -> None:
    text = f"actions: allocate\ntiers: [{{plugins: [{{name: gang, {switch}: false}}]}}]"
    conf = parse_scheduler_conf(text)

    assert conf.tiers[0][0].switches == {switch: False}
    assert conf.warnings == ()


def test_arguments_of_actions_are_kept_and_the_first_entry_counts() -> None:
    conf = parse_scheduler_conf("""
actions: allocate
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: false}
- name: allocate
  arguments: {predicateErrorCacheEnable: true}
- name: preempt
- name: elect
""")
    assert conf.action_arguments == {
        "allocate": {"predicateErrorCacheEnable": False},
        "preempt": {},
        "elect": {},
    }
    assert conf.warnings == (
        "configurations, entry 2 (allocate): argument predicateErrorCacheEnable has no effect",
        "configurations, entry 4: there is no action elect: it has no effect",
    )


def test_what_has_no_effect_is_told() -> None:
    conf = parse_scheduler_conf("""
actions: enqueue
schedulePeriod: 1s
tiers:
- plugins:
  - name: magic
  - name: gang
    enableJobOrdr: false
metrics:
  type: influxdb
  address: http://influx
""")
    assert conf.metrics is None
    assert conf.warnings == (
        "key schedulePeriod is unknown: it has no effect",
        "plugin magic is unknown: it has no effect",
        "tier 1, plugin 2 (gang): key enableJobOrdr is unknown: it has no effect",
        "metrics: nothing is asked of 'influxdb', known are prometheus, prometheus_adaptor, "
        "elasticsearch, metrics-server, annotation",
    )


def metrics(text: str) -> SchedulerConf:
    return parse_scheduler_conf(f"actions: allocate\nmetrics: {text}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        (
            "{address: 'http://p:9090/'}",
            MetricsConf(MetricsType.PROMETHEUS, address="http://p:9090"),
        ),
        (
            "{type: prometheus, address: https://p, interval: 1m, "
            "tls: {insecureSkipVerify: 'true'}}",
            MetricsConf(MetricsType.PROMETHEUS, "https://p", interval_s=60, insecure=True),
        ),
        (
            "{address: https://p, tls.insecureSkipVerify: true}",
            MetricsConf(MetricsType.PROMETHEUS, "https://p", insecure=True),
        ),
        ("{type: metrics-server}", MetricsConf(MetricsType.METRICS_SERVER)),
        ("{type: annotation, interval: 5s}", MetricsConf(MetricsType.ANNOTATION, interval_s=5)),
        ("{type: prometheus_adaptor}", MetricsConf(MetricsType.PROMETHEUS_ADAPTOR)),
        (
            "{type: elasticsearch, address: http://e, elasticsearch.index: '', "
            "elasticsearch.username: me, elasticsearch.password: 7}",
            MetricsConf(
                MetricsType.ELASTICSEARCH, "http://e", index=Index(username="me", password="7")
            ),
        ),
        (
            "{type: elasticsearch, address: http://e, "
            "elasticsearch: {index: beats, hostnameFieldName: agent.name}}",
            MetricsConf(MetricsType.ELASTICSEARCH, "http://e", index=Index("beats", "agent.name")),
        ),
    ],
)
def test_what_measures_nodes_is_read(text: str, found: MetricsConf | None) -> None:
    conf = metrics(text)
    assert conf.metrics == found
    assert conf.warnings == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("7", "metrics must be a mapping"),
        ("{type: prometheus}", "metrics: address: None is no http or https URL"),
        ("{address: p:9090}", "metrics: address: 'p:9090' is no http or https URL"),
        ("{address: 'http://u:p@h'}", "metrics: address: only scheme, host, port and path"),
        ("{address: http://p, interval: 10}", "metrics: interval: 10 is not a duration"),
        ("{address: http://p, interval: 1ms}", "metrics: interval: '1ms' is not a duration"),
        ("{address: http://p, tls: {insecureSkipVerify: 7}}", "tls.insecureSkipVerify: 7 is not"),
        ("{type: elasticsearch}", "metrics: address: None is no http or https URL"),
        (
            "{type: elasticsearch, address: http://e, elasticsearch.password: true}",
            "metrics: elasticsearch.password: True is not text",
        ),
        (
            "{type: elasticsearch, address: http://e, elasticsearch: {index: a/b}}",
            "metrics: elasticsearch.index: 'a/b' is no name of an index",
        ),
    ],
)
def test_what_cannot_measure_nodes_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfError, match=said):
        metrics(text)


def test_a_key_of_metrics_without_meaning_is_told() -> None:
    (said,) = metrics("{type: annotation, adress: x}").warnings
    assert said == "metrics: key adress is unknown: it has no effect"


def test_plugins_that_others_made_have_no_effect_and_what_stands_beside_them_has() -> None:
    policies = build(
        parse_scheduler_conf("""
actions: allocate
tiers:
- plugins:
  - name: gang
  - name: volcano-npu_v6.0.0_linux-aarch64
    enableNodeOrder: false
- plugins:
  - name: capasity
  - name: capacity
""")
    )
    assert policies.conf.warnings == (
        "plugin volcano-npu_v6.0.0_linux-aarch64 is unknown: it has no effect",
        "plugin capasity is unknown (did you mean capacity?): it has no effect",
    )
    assert [[conf.name for conf, _ in tier] for tier in policies.tiers] == [["gang"], ["capacity"]]


def test_tabs_separate_and_do_not_indent() -> None:
    tabbed = HELM.replace("actions: ", "actions:\t").replace(": gang", ": gang\t# or none")
    assert parse_scheduler_conf(tabbed).actions == ("enqueue", "allocate", "backfill")
    assert names(tabbed) == names(HELM)
    with pytest.raises(ConfError, match=r"^not valid YAML: line 4, column 1: found character"):
        parse_scheduler_conf(HELM.replace("- plugins", "\t- plugins", 1))


@pytest.mark.parametrize("rest", ["", "actions: backfill\n"])
def test_of_several_documents_the_first_counts_and_the_others_are_told_of(rest: str) -> None:
    conf = parse_scheduler_conf(f"---\nactions: allocate\n---\n{rest}")
    assert conf.actions == ("allocate",)
    assert conf.warnings == ("only the first document is read: what follows `---` has no effect",)


def test_no_tiers_is_no_plugins() -> None:
    assert parse_scheduler_conf("actions: allocate").tiers == ()
    assert parse_scheduler_conf("actions: allocate\ntiers:\n- plugins:\n").tiers == ((),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the configuration must be a mapping, not empty"),
        ("- actions", "the configuration must be a mapping, not a list"),
        ("allocate", "the configuration must be a mapping, not text"),
        ("tiers: []", f"actions: missing, known are {ACTIONS}"),
        ("actions: ''", f"actions: unknown action '', known are {ACTIONS}"),
        ("actions: allocate,", f"actions: unknown action '', known are {ACTIONS}"),
        (
            "actions: enqueue, alocate",
            f"actions: unknown action 'alocate', known are {ACTIONS}",
        ),
        (
            "actions: [enqueue]",
            "actions: must be text such as 'enqueue, allocate', not a list",
        ),
        ("actions: allocate\ntiers: 3", "tiers must be a list, not 3"),
        ("actions: allocate\ntiers: [gang]", "tier 1 must be a mapping, not text"),
        (
            "actions: allocate\ntiers: [{plugins: {name: gang}}]",
            "tier 1: plugins must be a list, not a mapping",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [gang]}]",
            "tier 1, plugin 1 must be a mapping, not text",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{nme: gang}]}]",
            "tier 1, plugin 1: name is missing or not text",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: maybe}]}]",
            "tier 1, plugin 1 (gang): enableJobOrder: 'maybe' is not true or false",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, arguments: [x]}]}]",
            "tier 1, plugin 1 (gang): arguments must be a mapping, not a list",
        ),
        (
            "actions: allocate\nconfigurations: [{arguments: {}}]",
            "configurations, entry 1: name is missing or not text",
        ),
        (
            "actions: allocate\nconfigurations: [{name: preempt, arguments: 1}]",
            "configurations, entry 1 (preempt): arguments must be a mapping, not 1",
        ),
        (
            "actions: allocate\ntiers: [",
            "not valid YAML: line 2, column 9: expected the node content, but found '<stream end>'",
        ),
        (
            "actions: a: b",
            "not valid YAML: line 1, column 11: mapping values are not allowed here",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfError) as caught:
        parse_scheduler_conf(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["actions: \x00", "actions: 2001-99-99", "x: " + "9" * 5000, "[" * 5000]
)
def test_text_that_the_yaml_library_trips_over_is_refused(text: str) -> None:
    with pytest.raises(ConfError, match=r"^not valid YAML: "):
        parse_scheduler_conf(text)


@given(st.text())
def test_any_text_is_either_read_or_refused(text: str) -> None:
    with suppress(ConfError):
        assert parse_scheduler_conf(text).actions
