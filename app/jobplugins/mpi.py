"""mpi: the master knows its workers, every container declares the port of ssh."""

from app.jobplugins import pods
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.rules.arguments import Mpi
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object

PORT_NAME = "mpijob-port"
VARIABLE = "MPI_HOST"


class MpiPlugin:
    """Adds a variable and a port."""

    def __init__(self, arguments: Mpi, job: JobFacts) -> None:
        """``arguments`` name the tasks."""
        self._arguments = arguments
        workers = job.job_tasks.task(arguments.worker)
        self._hosts = None if workers is None else ",".join(job.job_tasks.hosts(workers))

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """The list of hosts goes to the master only."""
        for container in pods.all_containers(pod):
            pods.add_port(pod, container, name=PORT_NAME, number=self._arguments.port)
        if place.task == self._arguments.master and self._hosts is not None:
            hosts = [pods.variable(VARIABLE, self._hosts)]
            pods.add_variables(pods.all_containers(pod), hosts)

    def objects(self) -> tuple[Wanted, ...]:
        """None."""
        return ()
