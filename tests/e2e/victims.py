"""Watches evictions while a test does harm: which pods were evicted, and by which stored intents.

What counts is what the API server told: that a pod is deleted by its Eviction API, and the intents
in the namespace of the installation, each with its certificate.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from app.model.eviction import Intent
from app.wire.intents import INTENT_OF, read_intents
from tests.clusters import workloads
from tests.clusters.client import ApiClient, ApiError, Event, Object
from tests.clusters.following import Follower
from tests.clusters.processes import wait_until
from tests.clusters.pumice import COMMAND
from tests.clusters.resources import CONFIG_MAPS
from tests.clusters.rig import NAMESPACE

_BY_EVICTION_API = "EvictionByEvictionAPI"


class Intents(Follower):
    """Follows the intents of eviction plans; `with` starts and ends it."""

    def __init__(self, api: ApiClient) -> None:
        super().__init__(api, NAMESPACE, CONFIG_MAPS)
        self._seen: dict[str, Intent] = {}
        self._there: set[str] = set()

    def all(self) -> list[Intent]:
        """Every intent that was ever stored since the beginning."""
        with self.lock:
            return list(self._seen.values())

    def wait_none(self) -> None:
        """Wait until none is stored: all plans have come to their end."""
        wait_until(lambda: not self._there, timeout_s=20, what="no intent is stored")

    def listed(self, items: Sequence[Object]) -> None:
        self._there = set()
        for item in items:
            self._take(item)

    def changed(self, event: Event) -> None:
        if event.kind == "DELETED":
            self._there.discard(event.object["metadata"]["uid"])
        else:
            self._take(event.object)

    def _take(self, item: Object) -> None:
        about = item["metadata"]
        if INTENT_OF not in about.get("labels", {}):
            return
        self._there.add(about["uid"])
        if about["uid"] not in self._seen:
            name = about["name"]
            self._seen[about["uid"]] = read_intents({name: item["data"]["intent"]})[name].intent


class Victims(Follower):
    """Follows the pods of a namespace, and makes each one anew that was evicted and has gone.

    A controller of these pods would do so. ``made`` are the pods by name as they were created;
    those of the groups in ``over`` are not made anew.
    """

    def __init__(self, api: ApiClient, namespace: str) -> None:
        super().__init__(api, namespace)
        self.made: dict[str, Object] = {}
        self.over: set[str] = set()
        self._pods: dict[str, Object] = {}
        self._evicted: dict[str, str] = {}
        self._failed: set[str] = set()
        self._pool = ThreadPoolExecutor(4)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._pool.shutdown(cancel_futures=True)

    def evicted(self) -> dict[str, str]:
        """The names of the pods that were evicted, by UID."""
        with self.lock:
            return dict(self._evicted)

    def failed(self) -> set[str]:
        """The pods that a kubelet refused, or that failed."""
        with self.lock:
            return set(self._failed)

    def bound(self) -> Counter[str]:
        """How many pods of each group are bound and stay."""
        with self.lock:
            stay = [pod for pod in self._pods.values() if not workloads.is_leaving(pod)]
            return Counter(map(_group_of, workloads.bound(stay)))

    def wait(self, holds: Callable[[Counter[str]], bool], *, timeout_s: float, what: str) -> None:
        """Wait until something holds for the counts of bound pods."""
        wait_until(lambda: holds(self.bound()), timeout_s=timeout_s, what=what)

    def listed(self, items: Sequence[Object]) -> None:
        there = {pod["metadata"]["uid"] for pod in items}
        for uid in self._pods.keys() - there:
            self._gone(uid)
        for pod in items:
            self._see(pod)

    def changed(self, event: Event) -> None:
        self._see(event.object)
        if event.kind == "DELETED":
            self._gone(event.object["metadata"]["uid"])

    def _see(self, pod: Object) -> None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self._pods[uid] = pod
        if _is_evicted(pod):
            self._evicted[uid] = name
        if pod["status"].get("phase") == "Failed" and not workloads.is_leaving(pod):
            self._failed.add(name)

    def _gone(self, uid: str) -> None:
        pod = self._pods.pop(uid)
        name = pod["metadata"]["name"]
        if uid in self._evicted and name in self.made:
            self._pool.submit(self._make_anew, name)

    def _make_anew(self, name: str) -> None:
        pod = self.made[name]
        if _group_of(pod) in self.over:
            return
        try:
            self._api.create(pod, namespace=self._namespace)
        except ApiError as error:
            if error.code not in (404, 409):  # the namespace goes, or it was asked for twice
                raise


def assert_accepted(intents: Iterable[Intent], folder: Path) -> None:
    """`pumice check-eviction` accepts all certificates, which are written to ``folder``."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, intent in enumerate(intents):
        files.append(folder / f"{number}-{intent.preemptor.replace('/', '-')}.json")
        files[-1].write_text(json.dumps(intent.certificate))
    if files:
        checked = subprocess.run(
            [COMMAND, "check-eviction", *files], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, (checked.stdout + checked.stderr, str(folder))


def _group_of(pod: Object) -> str:
    name: str = pod["metadata"].get("annotations", {}).get(workloads.GROUP, "")
    return name


def _is_evicted(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c.get("reason") == _BY_EVICTION_API for c in conditions)
