"""rescheduling by load: the example of its document, with loads that nodes tell."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime

import pytest
import yaml

from tests.clusters import workloads
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import NODES, PODS

DOCUMENT = ROOT / "docs" / "rescheduling.md"
QOS = "volcano.sh/qos-level"
_WAIT_S = 30.0


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    """The first block of the document; rounds are a second apart, and annotations tell loads."""
    found = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    document = yaml.safe_load(found[1])
    document["metrics"] = {"type": "annotation", "interval": "1s"}
    [moves] = [each for each in document["tiers"][1]["plugins"] if each["name"] == "rescheduling"]
    moves["arguments"]["interval"] = "1s"
    return yaml.safe_dump(document)


def tell(place: Place, cpu: float, node: str, *, age_s: float = 0.0) -> None:
    """Let a node say that its cpus are that busy."""
    now = datetime.fromtimestamp(time.time() - age_s, UTC)  # noqa: TID251 - the node's own clock
    load = {"cpu": cpu, "memory": 10, "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "window": 0}
    annotations = {"pumice.sh/node-load": json.dumps(load)}
    place.api.patch(NODES, node, {"metadata": {"annotations": annotations}})


def add_offline(place: Place, name: str, count: int, *, offline: bool = True) -> None:
    (job,) = documents(ROOT / "examples" / "scheduling" / "rescheduling.yaml")
    [task] = job["spec"]["tasks"]
    place.add_group(name, job["spec"]["minAvailable"])
    pods = workloads.members(name, count)
    for pod in pods:
        said = task["template"]["metadata"]["annotations"]
        pod["metadata"]["annotations"] |= said if offline else {QOS: "LS"}
    place.submit(pods)
    let_run(place, name, count)


def let_run(place: Place, group: str, count: int) -> None:
    """Wait until all are bound and, where there is no kubelet, let them start as one would."""
    place.wait_bound(group, count)
    for each in place.bound(group):
        if not each["status"].get("startTime"):
            about = each["metadata"]
            status = {"phase": "Running", "startTime": about["creationTimestamp"]}
            place.api.patch(
                PODS, about["name"], {"status": status}, namespace=place.name, subresource="status"
            )


def test_offline_pods_leave_a_busy_node_and_come_again_on_an_idle_one(place: Place) -> None:
    (busy,) = place.add_nodes(1, cpu="8")
    add_offline(place, "batch", 3)
    add_offline(place, "web", 2, offline=False)
    (idle,) = place.add_nodes(1, cpu="8")
    tell(place, 5, idle)
    tell(place, 71, busy)
    wait_until(lambda: len(place.bound("batch")) == 2, timeout_s=_WAIT_S, what="one is evicted")
    place.wait_event("batch", "Evict", says="because of shuffle")
    assert len(place.bound("web")) == 2
    pods = workloads.members("batch", 1)
    for pod in pods:
        pod["metadata"] |= {"name": "batch-again"}
    place.submit(pods)
    let_run(place, "batch", 3)
    assert [workloads.node_of(pod) for pod in place.bound("batch")].count(idle) == 1


def test_stale_loads_move_nothing(place: Place) -> None:
    (busy,) = place.add_nodes(1, cpu="8")
    add_offline(place, "batch", 3)
    (idle,) = place.add_nodes(1, cpu="8")
    tell(place, 5, idle)
    tell(place, 99, busy, age_s=310)
    with pytest.raises(AssertionError, match="one is evicted"):
        wait_until(lambda: len(place.bound("batch")) < 3, timeout_s=5, what="one is evicted")
    assert place.cluster.extender.metrics()["pumice_node_loads_known"] == 1
