"""ColocationConfigurations on both clusters: pods of jobs are told what agents are to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters.client import Object, Objects
from tests.clusters.installation import ROOT, documents
from tests.clusters.resources import COLOCATION_CONFIGURATIONS, PODS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)

CONFIG, NAME = "volcano.sh/colocation-config", "volcano.sh/colocation-config-name"
EXAMPLE, _ = documents(ROOT / "examples" / "scheduling" / "memory-qos.yaml")


def told(pod: Object) -> dict[str, Any]:
    said = pod["metadata"].get("annotations", {})
    return {key: said[key] for key in (CONFIG, NAME) if key in said}


def wait_told(ground: Ground, *expected: dict[str, Any]) -> None:
    def are_told(pods: Objects) -> bool:
        ordered = sorted(pods, key=lambda pod: pod["metadata"]["name"])
        return [told(pod) for pod in ordered] == list(expected)

    ground.wait(PODS, are_told, what=f"told {expected}")


def test_pods_are_told_while_a_configuration_selects_them_and_then_to_undo_it(
    ground: Ground,
) -> None:
    bulk, other = up(name="a-bulk"), up(name="other")
    bulk["template"]["metadata"] = {"labels": EXAMPLE["spec"]["selector"]["matchLabels"]}
    ground.submit("mixed", {"minAvailable": 2, "tasks": [bulk, other]})
    ground.wait(PODS, lambda pods: len(pods) == 2, what="both are there")
    ground.api.create(EXAMPLE, resource=COLOCATION_CONFIGURATIONS, namespace=ground.name)
    name = EXAMPLE["metadata"]["name"]
    wait_told(ground, {CONFIG: '{"memoryQos":{"highRatio":80}}', NAME: name}, {})
    change = {"spec": {"memoryQos": {"minRatio": 10}}}
    ground.api.patch(COLOCATION_CONFIGURATIONS, name, change, namespace=ground.name)
    wait_told(ground, {CONFIG: '{"memoryQos":{"highRatio":80,"minRatio":10}}', NAME: name}, {})
    ground.api.delete(COLOCATION_CONFIGURATIONS, name, namespace=ground.name)
    wait_told(ground, {CONFIG: "{}"}, {})
