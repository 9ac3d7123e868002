"""Alerts and dashboards ask for metrics that there are, by labels that these have."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import promql_parser as promql
import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram

from app.api.cluster_metrics import ClusterMetrics
from app.api.network_metrics import NetworkMetrics
from app.api.volcano_metrics import VolcanoMetrics
from app.telemetry import metrics
from app.telemetry.metrics import REGISTRY
from tests.clusters.installation import ROOT
from tests.service.rig import Rig

FOLDER: Final = ROOT / "manifests" / "monitoring"
DASHBOARDS: Final = sorted((FOLDER / "dashboards").glob("*.json"))
ADDED: Final = frozenset({"job", "pod", "namespace"})
"""Labels that Prometheus adds when it scrapes."""
OF_OTHERS: Final = {
    "kube_pod_info": frozenset({"node"}),
    "kube_pod_created": frozenset[str](),
    "kube_pod_status_phase": frozenset({"phase"}),
    "kube_pod_status_scheduled_time": frozenset[str](),
    "kube_pod_container_resource_requests": frozenset({"resource"}),
    "kube_pod_container_status_restarts_total": frozenset[str](),
    "process_resident_memory_bytes": frozenset[str](),
}
"""Metrics of kube-state-metrics and of each process, with the labels that are asked for."""


def alerts() -> list[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def asked() -> Iterator[tuple[str, str]]:
    """Where each expression stands, and the expression as Prometheus gets it."""
    for rule in alerts():
        yield rule["alert"], rule["expr"]
    for path in DASHBOARDS:
        for panel in dashboard(path)["panels"]:
            for target in panel.get("targets", ()):
                yield f"{path.stem}: {panel['title']}", target["expr"]


async def known() -> dict[str, frozenset[str]]:
    """The labels of each metric that there is; a rig wants an event loop."""
    found = dict(OF_OTHERS)
    rig = Rig()
    collectors = (ClusterMetrics, NetworkMetrics, VolcanoMetrics)
    families = [family for of in collectors for family in of(rig.cache, rig.planning).collect()]
    for family in (*REGISTRY.collect(), *families):
        labels = frozenset(getattr(family, "_labelnames", ()))
        labels |= {name for sample in family.samples for name in sample.labels}
        for name in {family.name, *(sample.name for sample in family.samples)}:
            found[name] = labels
    # Metrics without a value yet have no samples: they are known by their definitions.
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Gauge | Histogram):
            ends = {Counter: ("_total",), Histogram: ("_bucket", "_sum", "_count")}
            for end in ends.get(type(metric), ("",)):
                found[str(metric._name) + end] = frozenset(metric._labelnames)
    return found


def parts(of: Any) -> Iterator[Any]:
    """The expression and all that it is made of."""
    yield of
    for name in ("lhs", "rhs", "expr", "vector_selector", "selector"):
        inner = getattr(of, name, None)
        if inner is not None:
            yield from parts(inner)
    for argument in getattr(of, "args", ()):
        yield from parts(argument)


def grouped(part: Any) -> set[str]:
    """The labels that a part of an expression names in ``by`` or ``on``."""
    modifier = getattr(part, "modifier", None)
    named = getattr(modifier, "matching", modifier)
    return set(getattr(named, "labels", ()))


async def test_expressions_ask_for_metrics_and_labels_that_there_are() -> None:
    there = await known()
    for where, text in asked():
        found = list(parts(promql.parse(text)))
        selectors = [each for each in found if isinstance(each, promql.VectorSelector)]
        assert selectors, where
        labels = frozenset().union(*(there.get(str(e.name), frozenset()) for e in selectors))
        for each in selectors:
            assert each.name in there, f"{where}: there is no metric {each.name}"
            matched = {matcher.name for matcher in each.matchers.matchers}
            assert matched <= there[each.name] | ADDED, f"{where}: {each.name} has no such label"
        for each in found:
            named = grouped(each)
            assert named <= labels | ADDED | {"le"}, f"{where}: no {named} in {text}"


def test_a_metric_or_a_label_that_is_not_there_is_found() -> None:
    found = list(parts(promql.parse('sum by (a) (rate(x_bucket{b="c"}[5m])) > on (d) (y)')))
    names = {each.name for each in found if isinstance(each, promql.VectorSelector)}
    assert names == {"x_bucket", "y"}
    assert [grouped(each) for each in found if grouped(each)] == [{"d"}, {"a"}]


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    found = alerts()
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}, rule
        assert set(rule["annotations"]) == {"summary", "action"}, rule
        assert all(text.endswith(".") for text in rule["annotations"].values()), rule


def test_what_the_house_counts_as_health_is_an_alert() -> None:
    asked_for = " ".join(rule["expr"] for rule in alerts())
    for metric in (
        "volcano_queue_share",
        "pumice_group_wait_seconds",
        "pumice_groups_refused",
        "pumice_evictions_wasted_total",
        "pumice_ledger_drift",
        "pumice_cycle_seconds",
        "pumice_informer_lag_seconds",
    ):
        assert metric in asked_for, metric


def test_prometheus_reads_the_rules(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool: Debian's package prometheus has it")
    document = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(document["spec"]), encoding="utf-8")
    subprocess.run([promtool, "check", "rules", str(rules)], check=True, timeout=60)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_say_what_they_show_and_cover_no_other(path: Path) -> None:
    found = dashboard(path)
    covered: set[tuple[int, int]] = set()
    for panel in found["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not covered & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        covered |= cells
        if panel["type"] not in {"row", "text"}:
            assert panel["description"].endswith("."), panel["title"]
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    assert found["uid"].startswith("pumice-")


def test_kustomize_makes_a_config_map_that_grafana_finds() -> None:
    command = ["kubectl", "kustomize", str(FOLDER)]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    documents = {each["kind"]: each for each in yaml.safe_load_all(made)}
    assert set(documents) == {"ConfigMap", "PrometheusRule", "PodMonitor"}
    found = documents["ConfigMap"]
    assert found["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert set(found["data"]) == {path.name for path in DASHBOARDS}


def test_the_ports_that_are_scraped_are_those_of_the_pods() -> None:
    monitor = yaml.safe_load((FOLDER / "scrape.yaml").read_text(encoding="utf-8"))
    asked_for = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
    [names] = [each["values"] for each in monitor["spec"]["selector"]["matchExpressions"]]
    ports: set[str] = set()
    for name in ("scheduler", "controllers"):
        text = (ROOT / "manifests" / name / "deployment.yaml").read_text(encoding="utf-8")
        for document in yaml.safe_load_all(text):
            if document["kind"] != "Deployment":
                continue
            template = document["spec"]["template"]
            assert template["metadata"]["labels"]["app.kubernetes.io/name"] in names
            pod = template["spec"]
            for container in (*pod["containers"], *pod.get("initContainers", ())):
                ports |= {port["name"] for port in container.get("ports", ())}
    assert asked_for <= ports
