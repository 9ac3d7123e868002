"""rescheduling: what its arguments may be; for what it does see the tests of shuffle."""

from typing import Any

import pytest

from app.core.conf_error import ConfError
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
        ({"strategies": [{"name": "offlineOnly"}]}, "unknown strategy 'offlineOnly'"),
        (low(thresholds={"gpu": 1}), "thresholds: gpu is none of cpu, memory, pods"),
        (low(thresholds=[30]), r"thresholds: \[30\] is not a map"),
        (low(targetThresholds={"cpu": 101}), "targetThresholds.cpu: 101 is not from 0 to 100"),
        (low(targetThresholds={"cpu": "most"}), "targetThresholds.cpu: 'most' is not a number"),
        (low(nodeFit=False), "nodeFit: pods move only to nodes that they fit on"),
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
    strategies = [{"name": "lowPriorityFirst"}, *strategy["strategies"]]
    assert configured({"interval": "5m", "strategies": strategies}) == ()


def test_the_period_of_metrics_has_no_effect_and_says_so() -> None:
    [warning] = configured({"metricsPeriod": "5m"} | low())
    assert warning.endswith("argument metricsPeriod has no effect")
