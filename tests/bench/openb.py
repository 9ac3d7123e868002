"""Share of GPUs that is allocated on Alibaba's openb cluster: ``python -m tests.bench.openb``.

Nodes and requests are those of the trace ``cluster-trace-gpu-v2023`` of alibaba/clusterdata (files
``openb_node_list_gpu_node.csv`` and ``openb_pod_list_default.csv``): all shapes of its 1,213 nodes,
and of its 8,152 tasks the 40 most frequent requests and all of several GPUs, which are 92 % of
them. A quarter of the nodes is used. Tasks are drawn by that mix, and arrive until they ask for
130 % of the GPUs; none ends. A GPU is shared in thousandths.

``pumice`` is the planner with the plugin ``deviceshare`` (``binpack``, weight 10) beside
``nodeorder`` and ``binpack``, in one cycle. The others are rules for the same tasks in the same
order: ``binpack`` is Volcano's, the fullest GPU of the node that is fullest with the task;
``spread`` the emptiest GPU of the emptiest node; ``FGD`` the node and GPU by which the GPU
capacity grows least that tasks of the mix cannot use (Weng et al., "Beware of Fragmentation",
USENIX ATC 2023).
"""

import random
from collections.abc import Callable, Sequence
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from app.model.conf import PluginConf
from app.model.device_families import VGPU, NodeDevices
from app.model.devices import UNUSED, Device, DeviceKind
from app.model.shape import PodShape
from tests.builders import make_gang, make_node, make_shape
from tests.core.actions.rigs import cycle, members, policies
from tests.devices import MEMORY, NUMBER, asking

MIB = 1 << 20
GPU = 1000
"""Of a GPU, in the unit of the requests."""
PART = 4
"""One in so many nodes of each shape is used, rounded up."""
ARRIVES = 1.3
"""Of the GPUs that there are, so much is asked for."""

NODES: Sequence[tuple[int, int, int, int]] = (
    (549, 96000, 393216, 8),
    (387, 104000, 524288, 2),
    (107, 16000, 122880, 2),
    (39, 128000, 786432, 8),
    (28, 32000, 131072, 4),
    (22, 64000, 262144, 2),
    (21, 96000, 786432, 8),
    (19, 8000, 32768, 1),
    (17, 96000, 393216, 4),
    (9, 48000, 376832, 4),
    (7, 64000, 262144, 8),
    (3, 8000, 61440, 1),
    (2, 8000, 61440, 2),
    (2, 128000, 1048576, 1),
    (1, 82000, 344064, 8),
)
"""How many, thousandths of cpus, MiB, GPUs."""

TASKS: Sequence[tuple[int, int, int, int, int]] = (
    (1047, 3152, 5600, 1, 810),
    (857, 11300, 49152, 1, 1000),
    (534, 11400, 48128, 1, 1000),
    (470, 3152, 5600, 1, 1000),
    (388, 11908, 47104, 1, 470),
    (364, 12500, 57344, 0, 0),
    (360, 8000, 30517, 1, 470),
    (284, 32000, 49152, 0, 0),
    (255, 18708, 64512, 1, 1000),
    (237, 11908, 47104, 1, 650),
    (195, 9810, 41560, 1, 1000),
    (163, 8000, 30517, 0, 0),
    (158, 12000, 24576, 1, 1000),
    (158, 15700, 58368, 1, 1000),
    (153, 11908, 47104, 1, 1000),
    (120, 15400, 51200, 0, 0),
    (111, 4000, 22888, 1, 320),
    (108, 16000, 32768, 1, 1000),
    (104, 8000, 16384, 1, 1000),
    (104, 4000, 24576, 1, 1000),
    (99, 12000, 16384, 1, 1000),
    (95, 16500, 51200, 0, 0),
    (93, 14200, 58368, 1, 1000),
    (84, 4000, 30517, 1, 230),
    (84, 24200, 93184, 1, 1000),
    (78, 4000, 15258, 1, 320),
    (75, 3152, 5600, 1, 590),
    (72, 8000, 30517, 1, 320),
    (72, 4152, 10600, 1, 550),
    (65, 11400, 77824, 1, 1000),
    (55, 8000, 32768, 1, 1000),
    (53, 4000, 15258, 1, 160),
    (51, 6000, 6144, 1, 460),
    (51, 11900, 77824, 1, 1000),
    (45, 4152, 10600, 1, 370),
    (44, 12000, 15360, 1, 1000),
    (43, 4000, 30517, 1, 320),
    (41, 8200, 33792, 1, 1000),
    (40, 4000, 31250, 1, 1000),
    (36, 15200, 80896, 1, 1000),
    (18, 88000, 327680, 8, 1000),
    (2, 17400, 43008, 2, 1000),
    (3, 120000, 737280, 8, 1000),
    (18, 64200, 263168, 8, 1000),
    (9, 32200, 132096, 4, 1000),
    (7, 16200, 66560, 2, 1000),
    (2, 120200, 640000, 8, 1000),
    (3, 6000, 65536, 2, 1000),
    (3, 64000, 262144, 8, 1000),
    (1, 14000, 60000, 2, 1000),
    (3, 32000, 131072, 4, 1000),
    (3, 30200, 160768, 2, 1000),
    (3, 60200, 320512, 4, 1000),
)
"""How many, thousandths of cpus, MiB, GPUs, thousandths of each."""


class Task(NamedTuple):
    """A request: thousandths of cpus, MiB, GPUs, and thousandths of each."""

    cpu: int
    memory: int
    gpus: int
    share: int

    @property
    def asked(self) -> int:
        """Thousandths of GPUs in all."""
        return self.gpus * self.share


Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
MIX = [Task(*each[1:]) for each in TASKS]
WEIGHTS = np.array([each[0] for each in TASKS], dtype=np.float64) / sum(e[0] for e in TASKS)
MOST = max(gpus for *_, gpus in NODES)


class State:
    """What is free: ``cpu`` and ``memory`` by node, ``gpu`` by node and GPU (-1: there is none)."""

    def __init__(self) -> None:
        shapes = [each for count, *each in NODES for _ in range(-(-count // PART))]
        self.cpu: Ints = np.array([cpu for cpu, _, _ in shapes], dtype=np.int64)
        self.memory: Ints = np.array([memory for _, memory, _ in shapes], dtype=np.int64)
        self.size = self.cpu.copy()
        self.gpu: Ints = np.full((len(shapes), MOST), -1, dtype=np.int64)
        for row, (_, _, gpus) in enumerate(shapes):
            self.gpu[row, :gpus] = GPU

    def fits(self, task: Task) -> Mask:
        """The nodes that take the task."""
        there = (self.gpu >= max(task.share, 1)).sum(axis=1) >= task.gpus
        mask: Mask = (self.cpu >= task.cpu) & (self.memory >= task.memory) & there
        return mask

    def place(self, task: Task, node: int, gpus: Sequence[int]) -> None:
        """Take these GPUs of the node for the task."""
        self.cpu[node] -= task.cpu
        self.memory[node] -= task.memory
        self.gpu[node, list(gpus)] -= task.share


Rule = Callable[[State, Task, Ints], tuple[int, Sequence[int]]]
"""The node among those that take the task, and its GPUs."""


def binpack(state: State, task: Task, nodes: Ints) -> tuple[int, Sequence[int]]:
    """Volcano's rule."""
    gpus = _by_free(state, task, nodes, fullest=True)
    left = np.take_along_axis(state.gpu[nodes], gpus[:, : max(task.gpus, 1)], axis=1)
    taken = 1 - (left.sum(axis=1) - task.asked) / (GPU * max(task.gpus, 1))
    cpu = 1 - (state.cpu[nodes] - task.cpu) / state.size[nodes]
    at = int((cpu + 10 * taken if task.gpus else cpu).argmax())
    return int(nodes[at]), gpus[at, : task.gpus].tolist()


def spread(state: State, task: Task, nodes: Ints) -> tuple[int, Sequence[int]]:
    """The emptiest."""
    gpus = _by_free(state, task, nodes, fullest=False)
    free = np.maximum(state.gpu[nodes], 0).sum(axis=1) / GPU
    at = int((free + state.cpu[nodes] / state.size[nodes]).argmax())
    return int(nodes[at]), gpus[at, : task.gpus].tolist()


def fgd(state: State, task: Task, nodes: Ints) -> tuple[int, Sequence[int]]:
    """The least growth of fragments."""
    before = _fragments(state.cpu[nodes], state.memory[nodes], state.gpu[nodes])
    choices = _by_free(state, task, nodes, fullest=True)
    last = int((state.gpu[nodes] >= task.share).sum(axis=1).max()) if task.gpus == 1 else 1
    best: tuple[float, int, Sequence[int]] | None = None
    for turn in range(last):
        gpus = choices[:, turn : turn + task.gpus]
        gpu = state.gpu[nodes].copy()
        if task.gpus:
            left = np.take_along_axis(gpu, gpus, axis=1) - task.share
            np.put_along_axis(gpu, gpus, left, axis=1)
        after = _fragments(state.cpu[nodes] - task.cpu, state.memory[nodes] - task.memory, gpu)
        growth = np.where((gpu < -1).any(axis=1), np.inf, after - before)
        at = int(growth.argmin())
        if best is None or growth[at] < best[0]:
            best = float(growth[at]), int(nodes[at]), gpus[at].tolist()
    if best is None:
        raise ValueError("no node takes the task")
    return best[1], best[2]


def _by_free(state: State, task: Task, nodes: Ints, *, fullest: bool) -> Ints:
    """The GPUs of each node that have enough free in order, and behind them the others."""
    gpu = state.gpu[nodes]
    order = gpu if fullest else -gpu
    ordered: Ints = np.where(gpu >= max(task.share, 1), order, GPU * GPU).argsort(
        axis=1, kind="stable"
    )
    return ordered


def _fragments(cpu: Ints, memory: Ints, gpu: Ints) -> Floats:
    """Of each node the GPU capacity that a task of the mix cannot use, as expected."""
    there = np.maximum(gpu, 0)
    free = there.sum(axis=1)
    total = np.zeros(len(cpu))
    for task, weight in zip(MIX, WEIGHTS, strict=True):
        enough = there >= max(task.share, 1)
        runs = (cpu >= task.cpu) & (memory >= task.memory) & (enough.sum(axis=1) >= task.gpus)
        runs &= task.gpus > 0
        total += weight * np.where(runs, np.where(enough, 0, there).sum(axis=1), free)
    return total


def arrivals(seed: int, capacity: int) -> list[Task]:
    """Tasks that ask for :data:`ARRIVES` of the capacity."""
    die, found, asked = random.Random(seed), list[Task](), 0
    while asked < ARRIVES * capacity:
        (task,) = die.choices(MIX, WEIGHTS.tolist())
        found.append(task)
        asked += task.asked
    return found


def share_of(rule: Rule, tasks: Sequence[Task], capacity: int) -> float:
    """What the rule allocates of the GPUs."""
    state, taken = State(), 0
    for task in tasks:
        nodes = np.flatnonzero(state.fits(task))
        if len(nodes):
            state.place(task, *rule(state, task, nodes))
            taken += task.asked
    return taken / capacity


def share_of_planner(tasks: Sequence[Task], capacity: int) -> float:
    """What the planner allocates, in one cycle."""
    state = State()
    names = [f"n{row:04}" for row in range(len(state.cpu))]
    machines = [
        make_node(name, cpu=int(cpu), memory=int(memory) * MIB, pods=1000)
        for name, cpu, memory in zip(names, state.cpu, state.memory, strict=True)
    ]
    devices = {
        name: (_devices(name, int((gpus >= 0).sum())),)
        for name, gpus in zip(names, state.gpu, strict=True)
    }
    shares = {
        "deviceshare.VGPUEnable": True,
        "deviceshare.SchedulePolicy": "binpack",
        "deviceshare.ScheduleWeight": 10,
    }
    by = policies(
        (
            ("priority", "gang"),
            ("predicates", "nodeorder", "binpack", PluginConf("deviceshare", arguments=shares)),
        )
    )
    shapes = {task: _shape(task) for task in MIX}
    gangs = [
        make_gang(f"g{at:05}", waiting=members(f"g{at:05}", 1, shape=shapes[task]), created=at)
        for at, task in enumerate(tasks)
    ]
    outcome = cycle(*gangs, nodes=machines, by=by, devices=devices)
    placed = {each.gang for each in outcome.plan.placed}
    taken = sum(t.asked for gang, t in zip(gangs, tasks, strict=True) if gang.key in placed)
    return taken / capacity


def _devices(node: str, count: int) -> NodeDevices:
    kind = DeviceKind("GPU", GPU, sharers=100)
    found = tuple(Device(f"{node}-{at}", at, kind) for at in range(count))
    unused = (UNUSED,) * count
    return NodeDevices(VGPU, found, unused, unused, ((),) * count)


def _shape(task: Task) -> PodShape:
    asked = asking({NUMBER: task.gpus, MEMORY: task.share}) if task.gpus else None
    return make_shape(cpu=task.cpu, memory=task.memory * MIB, devices=asked)


def main() -> None:
    """Print the table."""
    state = State()
    capacity = int((state.gpu >= 0).sum()) * GPU
    rules: dict[str, Callable[[Sequence[Task]], float]] = {
        "pumice": lambda tasks: share_of_planner(tasks, capacity),
        "binpack": lambda tasks: share_of(binpack, tasks, capacity),
        "spread": lambda tasks: share_of(spread, tasks, capacity),
        "FGD": lambda tasks: share_of(fgd, tasks, capacity),
    }
    table = Table(title=f"{len(state.cpu)} nodes, {capacity // GPU} GPUs, {ARRIVES:.0%} asked")
    for column in ("rule", "GPUs allocated", "seed 1", "seed 2", "seed 3", "s"):
        table.add_column(column, justify="left" if column == "rule" else "right")
    every = [arrivals(seed, capacity) for seed in (1, 2, 3)]
    for name, rule in rules.items():
        began = process_time()
        shares = [rule(tasks) for tasks in every]
        took = process_time() - began
        mean = sum(shares) / len(shares)
        table.add_row(name, f"{mean:.1%}", *(f"{each:.1%}" for each in shares), f"{took:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
