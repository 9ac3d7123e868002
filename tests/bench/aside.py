"""3,000 gangs that no end of other pods helps beside one that could run: what they cost each cycle.

They are set aside by the first cycle that looks at them, so the ones after it see the others only.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from time import perf_counter, process_time

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.statics import ShapeCache
from app.core.planner import plan, plan_gang
from app.core.policy import Policies
from app.model.ids import group_key
from app.model.pod import GROUP_ANNOTATION
from app.model.workload import GroupPhase, Namespace, PodGroup
from tests.builders import GIB, make_amounts, make_node, make_pod, make_queue, make_shape

IMPOSSIBLE = 3_000
ROUNDS = 5
COLUMNS = ("3,000 impossible, 1 possible", "wall ms", "cpu ms")
_TOO_LARGE = make_shape(cpu=64_000)
_FITS = make_shape()


def rows(policies: Policies, *, nodes: int) -> Iterator[Sequence[str]]:
    """The first cycle, the ones after it, and the possible gang on demand."""
    cache, shapes = _cluster(nodes), ShapeCache()
    snapshotter = Snapshotter(cache)

    def cycle() -> None:
        decided = plan(snapshotter.snapshot(), policies, now=0.0, shapes=shapes)
        for key in decided.set_aside:
            cache.registry.set_aside(cache.groups[key])

    yield ("first cycle", *_timed(cycle, rounds=1))
    if len(cache.registry.aside) != IMPOSSIBLE:
        raise RuntimeError(f"{len(cache.registry.aside)} gangs were set aside")
    yield ("next cycles", *_timed(cycle, rounds=ROUNDS))
    key = group_key("default", "possible")
    asked = partial(plan_gang, policies=policies, key=key, now=0.0, shapes=shapes)
    if not asked(snapshotter.snapshot()).placed:
        raise RuntimeError("the gang that could run was not placed")
    yield ("on demand", *_timed(lambda: asked(snapshotter.snapshot()), rounds=ROUNDS))


def _cluster(nodes: int) -> ClusterCache:
    cache = ClusterCache(schedulers=frozenset({"volcano"}))
    for number in range(nodes):
        cache.set_node(make_node(f"node-{number:05}", cpu=32_000, memory=128 * GIB))
    cache.set_namespace(Namespace("default", {}, {}))
    for queue in ("root", "default"):
        cache.set_queue(make_queue(queue))
    for number in range(IMPOSSIBLE):
        _add(cache, f"impossible-{number}", cpu=64_000)
    _add(cache, "possible", cpu=1_000)
    return cache


def _add(cache: ClusterCache, name: str, *, cpu: int) -> None:
    cache.set_group(
        PodGroup(
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            resource_version="1",
            created=0.0,
            min_member=1,
            min_resources=make_amounts(cpu=cpu, memory=GIB, pods=1),
            phase=GroupPhase.INQUEUE,
        )
    )
    shape = _FITS if cpu == 1_000 else _TOO_LARGE
    cache.set_pod(make_pod(f"{name}-0", annotations={GROUP_ANNOTATION: name}, shape=shape), now=0.0)


def _timed(run: Callable[[], object], *, rounds: int) -> tuple[str, str]:
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(rounds):
        cpu, wall = process_time(), perf_counter()
        run()
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    return f"{median(walls) * 1e3:.1f}", f"{median(cpus) * 1e3:.1f}"
