"""Nodes full of pods of one core, and gangs that take room from them.

`PUMICE_ROUNDS=20` makes it 1,000 pods on 100 nodes, `make test` has 200 on 20. The pods run in
elastic gangs. When all of them run, the nodes can grow a little: then each pod of a taker needs
what is idle on a node and one victim there. Kubelets are played; a pod takes a second to end.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.nodes import in_parallel
from tests.clusters.place import Place
from tests.clusters.resources import EVENTS, NODES
from tests.clusters.rig import Rig
from tests.controllers.job.stand import kubelets
from tests.e2e.victims import Intents, Victims, assert_accepted
from tests.scale import FULL

NODES_COUNT: Final = 100 if FULL else 20
CORES: Final = 10
"""Of a node, when the pods of one core fill it."""
IDLE: Final = 2
"""Cores by which each node grows before a taker comes; each of its pods needs one more."""
TAKER: Final = NODES_COUNT
"""Pods of a taker."""
PODS: Final = NODES_COUNT * CORES
GANG: Final = 20
MINIMUM: Final = 10
_FILLED_S: Final = 120.0
_WASTED: Final = "EvictionWasted"


class Contested:
    """A place with its nodes, and what is seen of evictions there."""

    def __init__(self, place: Place, victims: Victims, intents: Intents) -> None:
        self.place = place
        self.victims = victims
        self.intents = intents
        self._nodes = place.add_nodes(NODES_COUNT, cpu=str(CORES))

    def resize(self, cpu: int) -> None:
        """Give each node so many cores."""
        room = {"cpu": str(cpu)}
        change = {"status": {"capacity": room, "allocatable": room}}

        def resize_one(name: str) -> None:
            self.place.api.patch(NODES, name, change, subresource="status")

        in_parallel(resize_one, self._nodes)

    def fill(self, prefix: str, **group: Any) -> None:
        """Let pods run until all nodes are full, in elastic gangs with names of that beginning."""
        names = [f"{prefix}-{number}" for number in range(PODS // GANG)]
        in_parallel(lambda name: self.add_gang(name, GANG, MINIMUM, group), names)
        self.wait_filled()

    def wait_filled(self) -> None:
        """Wait until all nodes are full again."""
        self.victims.wait(
            lambda bound: bound.total() == PODS, timeout_s=_FILLED_S, what="all nodes are full"
        )

    def add_gang(
        self, name: str, size: int, minimum: int, group: dict[str, Any], **fields: Any
    ) -> None:
        """A gang whose pods are made anew when they are evicted."""
        pods = [mortal(pod) for pod in workloads.members(name, size, **fields)]
        self.victims.made |= {pod["metadata"]["name"]: pod for pod in pods}
        self.place.add_group(name, minimum, **group)
        for pod in pods:
            self.place.submit_one(pod)

    def add_taker(self, name: str, queue: str = "default", priority: str = "") -> None:
        """A gang each pod of which needs what is idle on a node and one victim there."""
        group, pods = {"queue": queue}, workloads.members(name, TAKER, cpu=str(IDLE + 1))
        if priority:
            group["priorityClassName"] = priority
            for pod in pods:
                pod["spec"]["priorityClassName"] = priority
        self.place.add_group(name, TAKER, **group)
        self.place.submit(pods)

    def assert_as_intended(self, folder: Path, *, since: Collection[str] = ()) -> Counter[str]:
        """Each eviction after those of the UIDs ``since`` was intended, once, and none was in vain.

        The certificates are written to ``folder``. Returns how many pods went for each preemptor.
        """
        self.intents.wait_none()
        all_evicted, intents = self.victims.evicted(), self.intents.all()
        evicted = {uid: name for uid, name in all_evicted.items() if uid not in since}
        intents = [i for i in intents if not {v.uid for v in i.victims} <= set(since)]
        intended = sorted(victim.uid for intent in intents for victim in intent.victims)
        assert intended == sorted(evicted), sorted(set(intended) ^ evicted.keys())
        assert len(set(evicted.values())) == len(evicted), "what was made anew is evicted as well"
        assert_accepted(intents, folder)
        assert not self.victims.failed(), self.victims.failed()
        events = self.place.api.list(EVENTS, namespace=self.place.name)
        told = [event["message"] for event in events if event["reason"] == _WASTED]
        assert not told, told
        taken = Counter[str]()
        for intent in intents:
            taken[intent.preemptor.partition("/")[2]] += len(intent.victims)
        return taken

    def take_away(self, name: str) -> None:
        """Delete a gang for good."""
        self.victims.over.add(name)
        self.place.delete_gang(name)


def mortal(pod: Object) -> Object:
    """The pod, which takes a second to end."""
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 3600"]
    return pod


@contextlib.contextmanager
def opened(rig: Rig) -> Iterator[Contested]:
    """The nodes, still empty; all is taken away afterwards."""
    with (
        Place(rig) as place,
        Victims(place.api, place.name) as victims,
        Intents(place.api) as intents,
        kubelets(rig.controlplane, place.name),
    ):
        yield Contested(place, victims, intents)
