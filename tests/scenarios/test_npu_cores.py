"""deviceshare: pods get parts of Ascend chips that MindCluster's device plugin cuts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import CONFIG_MAPS, NODES
from tests.npu_cores import names
from tests.scenarios.confs import conf

CORES = "huawei.com/npu-core"
SYSTEM = "kube-system"


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    cut = {"name": "deviceshare", "arguments": {"deviceshare.AscendMindClusterVNPUEnable": True}}
    return conf("predicates", "proportion", "nodeorder", cut)


@pytest.fixture(scope="module")
def later() -> Iterator[ExitStack]:
    """What is cleaned up after the last test: rights that come and go are noticed late."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(autouse=True)
def may_read(place: Place, later: ExitStack) -> None:
    """The right to read what the device plugin says, which the extender does not have otherwise."""
    for item in documents(ROOT / "scheduler-config" / "ascend-chips-rights.yaml"):
        place.api.apply(item)
        about, kind = item["metadata"], place.api.resource_of(item)
        later.callback(place.api.delete, kind, about["name"], namespace=about["namespace"])


@pytest.fixture
def node(place: Place) -> Iterator[str]:
    """A node with two chips."""
    (name,) = place.add_nodes(
        1, cpu="8", extra={CORES: "16"}, labels={"servertype": "Ascend310P-8"}
    )
    place.api.patch(NODES, name, {"metadata": {"annotations": {"baseDeviceInfos": names(2)}}})
    tell(place, name)
    yield name
    place.api.delete(CONFIG_MAPS, f"mindx-dl-deviceinfo-{name}", namespace=SYSTEM)


def tell(place: Place, node: str, *, ill: str = "") -> None:
    """The device plugin of the node says which chips do not work."""
    lists = {"huawei.com/Ascend310P-Unhealthy": ill}
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"mindx-dl-deviceinfo-{node}",
            "namespace": SYSTEM,
            "labels": {"mx-consumer-cim": "true"},
        },
        "data": {"DeviceInfoCfg": json.dumps({"DeviceInfo": {"DeviceList": lists}})},
    }
    place.api.apply(item)


def add_gang(place: Place, name: str, count: int, *, cores: int, **labels: str) -> None:
    place.add_group(name, count)
    limits = {"cpu": "100m", CORES: str(cores)}
    pods = workloads.members(name, count, resources={"limits": limits, "requests": limits})
    for pod in pods:
        said = {key.replace("_", "-"): text for key, text in labels.items()}
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **said}
    place.submit(pods)


def told(place: Place, group: str) -> list[Any]:
    return sorted(pod["metadata"]["annotations"][CORES] for pod in place.bound(group))


@pytest.mark.usefixtures("node")
def test_members_share_chips_and_are_told_chip_and_template(place: Place) -> None:
    add_gang(place, "high", 2, cores=4, vnpu_level="high")
    place.wait_bound("high", 2)
    assert told(place, "high") == ["0-vir04", "1-vir04"]
    add_gang(place, "low", 2, cores=4)
    place.wait_bound("low", 2)
    assert told(place, "low") == ["0-vir04_3c", "1-vir04_3c"]
    times = {pod["metadata"]["annotations"]["predicate-time"] for pod in place.bound("low")}
    assert all(len(each) == 19 for each in times)


@pytest.mark.usefixtures("node")
def test_a_gang_waits_with_numbers_until_cores_are_free(place: Place) -> None:
    add_gang(place, "first", 2, cores=4, vnpu_dvpp="yes")
    place.wait_bound("first", 2)
    add_gang(place, "second", 2, cores=2)
    place.wait_summary("second", "template vir02_1c needs the DVPP of an Ascend310P")
    place.delete_gang("first")
    place.wait_bound("second", 2)
    assert told(place, "second") == ["0-vir02_1c", "0-vir02_1c"]


def test_a_chip_that_does_not_work_is_given_to_no_pod(place: Place, node: str) -> None:
    tell(place, node, ill="Ascend310P-0")
    add_gang(place, "ours", 2, cores=8)
    place.wait_summary("ours", "devices")
    tell(place, node)
    place.wait_bound("ours", 2)
    assert told(place, "ours") == ["0", "1"]


@pytest.mark.usefixtures("node")
def test_what_no_template_gives_is_said(place: Place) -> None:
    add_gang(place, "odd", 1, cores=3)
    place.wait_summary("odd", "huawei.com/npu-core: 3 is not 1, 2, 4 or a multiple of 8")
