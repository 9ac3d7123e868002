"""pytorch: what ``torch.distributed`` reads from the environment, or torchrun with ``--elastic``.

Without ``--elastic`` the pods are the processes: the master is rank 0, workers follow. With it each
pod runs torchrun, which is configured by ``PET_*`` variables (``torch.distributed.run``: every
option can be given so); ranks are what the pods agree on at the rendezvous, held by the first pod
of the master task, or of the workers where there is no master. That pod is told that it is the
host: by default torchrun compares addresses, which fails while DNS does not know the pod yet.
"""

from typing import Any

from app.jobplugins import pods
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.ranks import Ranks, ranks
from app.jobplugins.rules.arguments import Pytorch
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object

PORT_NAME = "pytorchjob-port"
WAITER = "wait-for-master"

_WAIT = """\
reachable() {{ nc -z -w 2 {host} {port} || : < /dev/tcp/{host}/{port}; }} 2> /dev/null
waited=0
until reachable; do
  if [ "$waited" -ge {timeout} ]; then
    echo "{host}:{port} was not reachable within {timeout} s" >&2
    exit 1
  fi
  sleep 2
  waited=$((waited + 2))
done
"""


class PytorchPlugin:
    """Adds variables, a port, and an init container that waits for the master."""

    def __init__(self, arguments: Pytorch, job: JobFacts) -> None:
        """``arguments`` choose between ranks and a rendezvous."""
        self._arguments = arguments
        self._job = job
        self._ranks = ranks(job.job_tasks, arguments.master, arguments.worker)
        leader = self._ranks.leader if arguments.elastic else self._ranks.first
        self._host = job.job_tasks.first_host(leader) if leader is not None else ""

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """Add the variables of the rendezvous; nothing where no task is the master."""
        rank = self._ranks.of(place)
        if not self._host or (self._arguments.elastic and rank is None):
            return
        for container in pods.containers(pod):
            pods.add_port(pod, container, name=PORT_NAME, number=self._arguments.port)
            if self._arguments.elastic:
                variables = self._rendezvous(container, is_host=rank == 0)
            else:
                variables = self._world(rank)
            pods.add_variables([container], variables)
        if self._waits(place):
            self._add_waiter(pod)

    def objects(self) -> tuple[Wanted, ...]:
        """None."""
        return ()

    def _world(self, rank: int | None) -> list[Object]:
        variables = [
            pods.variable("MASTER_ADDR", self._host),
            pods.variable("MASTER_PORT", str(self._arguments.port)),
            pods.variable("WORLD_SIZE", str(self._ranks.size)),
        ]
        if rank is not None:
            variables.append(pods.variable("RANK", str(rank)))
        return variables

    def _rendezvous(self, container: Object, *, is_host: bool) -> list[Object]:
        given = self._arguments
        values = {
            "RDZV_BACKEND": given.rdzv_backend,
            "RDZV_ENDPOINT": given.rdzv_endpoint or f"{self._host}:{given.port}",
            "RDZV_ID": self._job.uid or self._job.name,
            "NNODES": _nodes(given, self._ranks),
            "NPROC_PER_NODE": given.nproc_per_node or str(_accelerators(container) or 1),
        }
        if not given.rdzv_endpoint:
            values["RDZV_CONF"] = f"is_host={str(is_host).lower()}"
        if given.max_restarts:
            values["MAX_RESTARTS"] = str(given.max_restarts)
        return [pods.variable(f"PET_{name}", value) for name, value in values.items()]

    def _waits(self, place: PodOfJob) -> bool:
        given = self._arguments
        if not given.wait_master_enabled or place.task != given.worker or given.rdzv_endpoint:
            return False
        return self._ranks.of(place) != 0

    def _add_waiter(self, pod: Object) -> None:
        there = pods.init_containers(pod)
        if any(container.get("name") == WAITER for container in there):
            return
        given = self._arguments
        script = _WAIT.format(host=self._host, port=given.port, timeout=given.wait_master_timeout)
        waiter = {
            "name": WAITER,
            "image": given.wait_master_image,
            "command": ["sh", "-c", script],
        }
        pod["spec"]["initContainers"] = [*there, waiter]


def _nodes(given: Pytorch, members: Ranks) -> str:
    highest = max(given.max_nodes or members.size, 1)
    lowest = min(max(given.min_nodes or members.least, 1), highest)
    return f"{lowest}:{highest}"


def _accelerators(container: Object) -> int:
    """The whole GPUs that a container gets."""
    limits: dict[str, Any] = (container.get("resources") or {}).get("limits") or {}
    counts = [str(count) for name, count in limits.items() if name.endswith("/gpu")]
    return sum(int(count) for count in counts if count.isdecimal())
