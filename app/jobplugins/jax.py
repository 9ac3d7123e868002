"""jax: the processes of ``jax.distributed`` know the coordinator, their number and their own.

JAX itself reads the first variable; a program passes the other two on::

    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
    )

Process 0 coordinates: the first pod of the coordinator task, or of the workers where there is none.
"""

from app.jobplugins import pods
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.ranks import ranks
from app.jobplugins.rules.arguments import Jax
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object

PORT_NAME = "jaxjob-port"


class JaxPlugin:
    """Adds variables, and the coordinator's port."""

    def __init__(self, arguments: Jax, job: JobFacts) -> None:
        """``arguments`` name the tasks."""
        self._port = arguments.port
        self._ranks = ranks(job.job_tasks, arguments.coordinator, arguments.worker)
        leader = self._ranks.leader
        self._host = job.job_tasks.first_host(leader) if leader is not None else ""

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """Pods of other tasks are no processes."""
        rank = self._ranks.of(place)
        if rank is None:
            return
        variables = [
            pods.variable("JAX_COORDINATOR_ADDRESS", f"{self._host}:{self._port}"),
            pods.variable("JAX_NUM_PROCESSES", str(self._ranks.size)),
            pods.variable("JAX_PROCESS_ID", str(rank)),
        ]
        pods.add_variables(pods.containers(pod), variables)
        if rank == 0:
            for container in pods.containers(pod):
                pods.add_port(pod, container, name=PORT_NAME, number=self._port)

    def objects(self) -> tuple[Wanted, ...]:
        """None."""
        return ()
