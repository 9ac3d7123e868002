"""What the columns of running pods cost: ``python -m tests.bench.running``.

50,000 bound pods of a scheduler of ours on 5,000 nodes: made first, made again when nothing or 100
pods changed, and evicting 100 pods on a ledger.
"""

from collections.abc import Callable
from dataclasses import replace
from time import process_time

from rich.console import Console

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.ledger import Ledger
from app.model.ids import DEFAULT_QUEUE, NodeName
from tests.builders import make_node, make_pod, make_queue

NODES, PODS, SOME = 5_000, 50_000, 100


def main() -> None:
    """Print milliseconds of the processor."""
    cache = ClusterCache(schedulers=frozenset({"volcano"}), default_queue=DEFAULT_QUEUE)
    cache.set_queue(make_queue(DEFAULT_QUEUE))
    for number in range(NODES):
        cache.set_node(make_node(f"n{number}", cpu=64_000))
    pods = [
        make_pod(f"p{number}", node=NodeName(f"n{number % NODES}"), phase="Running")
        for number in range(PODS)
    ]
    for pod in pods:
        cache.set_pod(pod, now=1.0)
    snapshotter = Snapshotter(cache)
    snapshotter.snapshot()

    def change() -> None:
        for pod in pods[:SOME]:
            cache.set_pod(replace(pod, deleting=True), now=2.0)

    _tell("snapshot without", lambda: snapshotter.snapshot())
    _tell("first with running pods", lambda: snapshotter.snapshot(running=True))
    _tell("again, nothing changed", lambda: snapshotter.snapshot(running=True))
    change()
    _tell(f"{SOME} changed, without", lambda: snapshotter.snapshot())
    _tell(f"{SOME} changed, with", lambda: snapshotter.snapshot(running=True))
    ledger = Ledger(snapshotter.snapshot(running=True))

    def evict() -> None:
        for at in range(SOME):
            ledger.evict(at)

    _tell(f"evicting {SOME}", evict)
    _tell("undoing that", lambda: ledger.undo_since(0))


def _tell(what: str, work: Callable[[], object]) -> None:
    began = process_time()
    work()
    Console().print(f"{what:28} {1000 * (process_time() - began):8.2f} ms")


if __name__ == "__main__":
    main()
