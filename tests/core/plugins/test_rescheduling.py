"""rescheduling: what its arguments may be; for what it does see the tests of shuffle."""

from typing import Any

import pytest

from app.core.conf_error import ConfError
from app.core.plugins.rescheduling import period_of
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf


def configured(arguments: dict[str, Any]) -> tuple[str, ...]:
    """What is odd in these arguments."""
    conf = PluginConf("rescheduling", arguments=arguments)
    return build(SchedulerConf(actions=(), tiers=((conf,),))).conf.warnings


def low(**params: Any) -> dict[str, Any]:
    return {"strategies": [{"name": "lowNodeUtilization", "params": params}]}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"interval": "soon"}, "interval: 'soon' is not a positive duration"),
        ({"strategies": "lowNodeUtilization"}, "'lowNodeUtilization' is not a list"),
        ({"strategies": ["lowNodeUtilization"]}, "'lowNodeUtilization' is not a map"),
        ({"strategies": [{"name": "moreReplicas"}]}, "unknown strategy 'moreReplicas', not of low"),
        ({"metricsPeriod": 300}, "metricsPeriod: 300 is not a positive duration"),
        ({"metricsPeriod": "10s"}, "metricsPeriod: '10s' is less than 30s"),
        (low(thresholds={"gpu": 1}), "thresholds: gpu is none of cpu, memory, pods"),
        (low(thresholds=[30]), r"thresholds: \[30\] is not a map"),
        (low(targetThresholds={"cpu": 101}), "targetThresholds.cpu: 101 is not from 0 to 100"),
        (low(targetThresholds={"cpu": "most"}), "targetThresholds.cpu: 'most' is not a number"),
        (low(nodeFit="perhaps"), "nodeFit: 'perhaps' is not true or false"),
        (low(thresholdPriorityClassName=7), "thresholdPriorityClassName: 7 is not text"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfError, match=f"plugin rescheduling: .*{text}"):
        configured(arguments)


def test_volcanos_example_is_accepted() -> None:
    targets = {"cpu": "80", "memory": 85}
    strategy = low(thresholds={"cpu": 20, "memory": 20}, targetThresholds=targets, nodeFit="true")
    before = [{"name": "offlineOnly"}, {"name": "lowPriorityFirst"}]
    strategies = [*before, *strategy["strategies"]]
    given = {"interval": "5m", "metricsPeriod": "5m", "strategies": strategies}
    assert configured(given) == ()


@pytest.mark.parametrize("said", [True, False, "true", "false", None])
def test_node_fit_may_be_either(said: object) -> None:
    assert configured(low(nodeFit=said)) == ()


@pytest.mark.parametrize(
    ("arguments", "period_s"),
    [
        ({}, None),
        ({"strategies": [{"name": "offlineOnly"}]}, None),
        (low(), 300.0),
        (low() | {"metricsPeriod": "10m"}, 600.0),
    ],
)
def test_loads_are_averaged_over_the_period_where_a_strategy_looks_at_them(
    arguments: dict[str, Any], period_s: float | None
) -> None:
    assert period_of(PluginConf("rescheduling", arguments=arguments)) == period_s
