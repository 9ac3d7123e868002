"""The scheduler configuration in force: a bad text changes nothing and says why."""

import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.model.device_claims import CountedClaims
from app.service.configuration import Configuration
from app.telemetry import metrics
from app.wire.scheduler_conf import DEFAULT_CONF
from tests.scale import examples

PACKING = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: binpack
"""


def reloads(outcome: str) -> float:
    return float(metrics.CONFIGURATION_RELOADS.labels(outcome)._value.get())


def test_the_default_is_in_force_until_something_is_loaded() -> None:
    configuration = Configuration()
    assert configuration.policies.conf.actions == ("enqueue", "allocate", "backfill")
    assert configuration.notices() == ()
    assert not configuration.packs


def test_a_good_text_is_in_force_at_once() -> None:
    configuration = Configuration()
    before = reloads("loaded")
    assert configuration.load(PACKING)
    assert configuration.policies.conf.actions == ("enqueue", "allocate")
    assert configuration.packs
    assert reloads("loaded") == before + 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the configuration must be a mapping"),
        ("actions: [", "not valid YAML"),
        ("actions: !!bool all", "not valid YAML: line 1, column 10"),
        ("actions: allocate\ntiers:\n- plugins: nonsense\n", "tier 1: plugins must be a list"),
        ("actions: dance\n", "unknown action 'dance'"),
        ("tiers: []\n", "actions: missing"),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: overcommit\n"
            "    arguments: {overcommit-factor: lots}\n",
            "overcommit",
        ),
    ],
)
def test_a_bad_text_keeps_the_old_configuration_and_says_why(
    text: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = Configuration()
    configuration.load(PACKING)
    before, refused = configuration.policies, reloads("refused")
    with caplog.at_level(logging.ERROR):
        assert not configuration.load(text)
    assert configuration.policies is before
    [notice] = configuration.notices()
    assert notice.startswith("scheduler configuration refused: ")
    assert why in notice
    assert "\n" not in notice
    assert reloads("refused") == refused + 1
    assert [record.message for record in caplog.records] == ["scheduler configuration refused"]


def test_a_good_text_takes_the_complaint_back() -> None:
    configuration = Configuration()
    configuration.load("actions: dance")
    assert configuration.load(DEFAULT_CONF)
    assert configuration.notices() == ()


def test_what_has_no_effect_is_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration()
    with caplog.at_level(logging.WARNING):
        assert configuration.load(PACKING + "colour: blue\n")
    assert configuration.notices() == ("key colour is unknown: it has no effect",)
    assert [record.message for record in caplog.records] == ["scheduler configuration"]


@examples(50)
@given(st.text())
@example("\x00")
def test_whatever_is_in_the_file_nothing_breaks(text: str) -> None:
    configuration = Configuration()
    loaded = configuration.load(text)
    assert configuration.policies.conf.actions
    assert loaded is not bool(configuration.problem)
    assert "\n" not in configuration.problem


def test_the_labels_of_the_networks_tiers_are_named_by_the_plugin() -> None:
    configuration = Configuration()
    assert not configuration.network_labels
    text = """
actions: allocate
tiers:
- plugins:
  - name: network-topology-aware
    arguments: {hypernode.tiers: "example.com/row, example.com/rack"}
"""
    assert configuration.load(text)
    assert configuration.notices() == ()
    assert configuration.network_labels == ("example.com/row", "example.com/rack")
    assert not configuration.load(text.replace("/rack", "/row"))


def test_kubelets_are_heeded_where_the_plugin_is_named() -> None:
    configuration = Configuration()
    assert not configuration.heeds_numa
    assert configuration.load("actions: allocate\ntiers: [{plugins: [{name: numa-aware}]}]")
    assert configuration.heeds_numa


@pytest.mark.parametrize(
    ("actions", "plugin", "revokes"),
    [("preempt", "tdm", True), ("allocate", "tdm", False), ("preempt", "gang", False)],
)
def test_pods_leave_nodes_by_the_clock_where_plugin_and_action_are_named(
    actions: str, plugin: str, revokes: bool
) -> None:
    configuration = Configuration()
    assert configuration.load(f"actions: {actions}\ntiers: [{{plugins: [{{name: {plugin}}}]}}]")
    assert configuration.revokes is revokes


CLAIMS = "capacity.DynamicResourceAllocationEnable"
AMOUNTS = "capacity.DRAConsumableCapacityEnable"


@pytest.mark.parametrize(
    ("plugin", "timeout_s", "counted"),
    [
        ("gang", None, CountedClaims()),
        ("predicates", None, CountedClaims()),
        ("predicates, arguments: {volumebinding.bindTimeoutSeconds: '90'}", 90.0, CountedClaims()),
        (f"capacity, arguments: {{{CLAIMS}: false}}", None, CountedClaims(devices=False)),
        (f"capacity, arguments: {{{AMOUNTS}: 'false'}}", None, CountedClaims(amounts=False)),
    ],
)
def test_plugins_say_how_long_volumes_take_and_what_of_claims_counts(
    plugin: str, timeout_s: float | None, counted: CountedClaims
) -> None:
    configuration = Configuration()
    assert configuration.load(f"actions: allocate\ntiers: [{{plugins: [{{name: {plugin}}}]}}]")
    assert configuration.notices() == ()
    assert configuration.bind_timeout_s == timeout_s
    assert configuration.counted_claims == counted
