"""`--placement`: how a gated pod is told its place, as the stock kube-scheduler then takes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from tests.clusters import workloads
from tests.clusters.client import Event, Object
from tests.clusters.following import Follower
from tests.clusters.place import Place
from tests.clusters.rig import Setting, Stage

pytestmark = pytest.mark.real


class Told(Follower):
    """What pods were told before they were bound: the nodes of pins and of nominations."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.api, place.name)
        self.pinned: dict[str, str] = {}
        self.nominated: dict[str, str] = {}

    def listed(self, items: Sequence[Object]) -> None:
        self._look(items)

    def changed(self, event: Event) -> None:
        self._look([event.object])

    def _look(self, pods: Iterable[Object]) -> None:
        for pod in pods:
            name = pod["metadata"]["name"]
            for node in pins_of(pod):
                self.pinned[name] = node
            if not workloads.node_of(pod) and pod["status"].get("nominatedNodeName"):
                self.nominated[name] = pod["status"]["nominatedNodeName"]


def pins_of(pod: Object) -> list[str]:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        field["values"][0]
        for term in required.get("nodeSelectorTerms", ())
        for field in term.get("matchFields", ())
    ]


@pytest.mark.parametrize("placement", ["pin", "nominate", "guide", "auto"])
def test_gated_pods_are_told_their_places_so(stage: Stage, placement: str) -> None:
    rig = stage.rig(Setting(flags=(f"--placement={placement}",)))
    with Place(rig) as place, Told(place) as told:
        place.add_nodes(3, cpu="2")
        place.add_gang("gang", 6)
        bound = {
            pod["metadata"]["name"]: workloads.node_of(pod) for pod in place.wait_bound("gang", 6)
        }
        with told.lock:
            pinned, nominated = dict(told.pinned), dict(told.nominated)

    assert len(set(bound.values())) == 3
    assert pinned == (bound if placement == "pin" else {})
    assert nominated == (bound if placement in {"nominate", "auto"} else {})
