"""Alerts fire when they should: Prometheus' own promtool plays metrics against the rules."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.test_monitoring import FOLDER

MISSING = "there is no promtool: Debian's package prometheus has it"
FIRST = {
    "PumiceEvictionsWasted": ('pumice_evictions_wasted_total{why="late"}', 3),
    "PumicePluginFails": ('pumice_plugin_faults_total{plugin="tdm"}', 1),
    "PumiceConfigurationRefused": (
        'pumice_configuration_reloads_total{outcome="refused"}',
        1,
    ),
    "PumiceObjectsUnreadable": ('pumice_informer_malformed_total{kind="jobs"}', 1),
}
"""Alerts about counters that are told once something was counted, and what is told then."""


@pytest.fixture
def play(tmp_path: Path) -> Any:
    """Whether an alert fires after so many minutes of a metric."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip(MISSING)
    document = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(document["spec"]), encoding="utf-8")

    def fires(alert: str, minutes: int, told: Mapping[str, str]) -> bool:
        series = [{"series": name, "values": values} for name, values in told.items()]
        nothing = {"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": []}
        test = {"interval": "1m", "input_series": series, "alert_rule_test": [nothing]}
        tests = tmp_path / "tests.yaml"
        tests.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}), "utf-8")
        done = subprocess.run(
            [promtool, "test", "rules", str(tests)], capture_output=True, text=True, timeout=60
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0 or "got:[" in said.replace(" ", "").replace("\n", ""), said
        return done.returncode != 0

    return fires


@pytest.mark.parametrize("alert", FIRST)
def test_what_is_counted_for_the_first_time_is_an_alert(play: Any, alert: str) -> None:
    """Such a counter is not told before, so it never rises from 0 for Prometheus."""
    series, many = FIRST[alert]
    assert play(alert, 8, {series: f"_x5 {many}x5"})


@pytest.mark.parametrize("alert", FIRST)
def test_what_was_counted_long_ago_is_no_alert(play: Any, alert: str) -> None:
    series, many = FIRST[alert]
    assert not play(alert, 90, {series: f"{many}x100"})
    assert play(alert, 95, {series: f"{many}x90 {many + 1}x10"})


def test_a_lease_that_no_replica_holds_is_an_alert(play: Any) -> None:
    lease = 'pumice_leader{lease="pumice-scheduler",pod="%s"}'
    assert play("PumiceNoLeader", 5, {lease % "a": "0x10", lease % "b": "0x10"})
    assert not play("PumiceNoLeader", 5, {lease % "a": "0x10", lease % "b": "1x10"})


def test_processes_that_are_all_gone_are_an_alert(play: Any) -> None:
    lease = 'pumice_leader{lease="pumice-scheduler"}'
    assert play("PumiceGone", 30, {lease: "1x10"})
    assert play("PumiceGone", 120, {lease: "1x10"})
    assert not play("PumiceGone", 30, {lease: "1x40"})


def test_a_queue_is_below_its_share_only_while_it_has_groups_that_wait(play: Any) -> None:
    deserves = {'volcano_queue_deserved_milli_cpu{queue_name="a"}': "4000x60"}
    devices = 'volcano_queue_deserved_scalar_resources{queue_name="a",resource="nvidia.com/gpu"}'
    assert play("PumiceQueueBelowItsShare", 45, queue(0.2, 1) | deserves)
    assert play("PumiceQueueBelowItsShare", 45, queue(0.2, 1) | {devices: "4000x60"})
    assert not play("PumiceQueueBelowItsShare", 45, queue(0.2, 0) | deserves)
    assert not play("PumiceQueueBelowItsShare", 45, queue(0.9, 1) | deserves)


def test_a_queue_that_deserves_nothing_is_not_below_its_share(play: Any) -> None:
    nothing = {'volcano_queue_deserved_milli_cpu{queue_name="a"}': "0x60"}
    assert not play("PumiceQueueBelowItsShare", 45, queue(0.0, 1) | nothing)


@pytest.mark.parametrize(
    ("cause", "cpu", "fires"),
    [
        ("NotEnoughResources", 0.4, True),
        ("NotEnoughResources", 0.1, False),
        ("QueueQuota", 1, False),
    ],
)
def test_idle_room_is_an_alert_where_nothing_is_scarce_and_no_limit_keeps_gangs_waiting(
    play: Any, cause: str, cpu: float, fires: bool
) -> None:
    def idle(resource: str, share: float) -> dict[str, str]:
        labels = f'resource="{resource}",cause="{cause}"'
        return {f"pumice_cluster_idle_while_waiting{{{labels}}}": f"{share}x60"}

    told = idle("cpu", cpu) | idle("memory", 0.9)
    assert play("PumiceIdleWhileGangsWait", 30, told) is fires


def queue(share: float, waiting: int) -> dict[str, str]:
    """What a queue holds of what it deserves, and how many groups wait in it."""
    return {
        'volcano_queue_share{queue_name="a"}': f"{share}x60",
        'volcano_queue_pod_group_inqueue_count{queue_name="a"}': "0x60",
        'volcano_queue_pod_group_pending_count{queue_name="a"}': f"{waiting}x60",
    }
