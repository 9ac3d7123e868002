"""ray: a Ray cluster of a head and workers.

The plugin owns the commands of the two containers it is told of, and makes a Service before the
head, for clients and the dashboard.
"""

from app.jobplugins import pods
from app.jobplugins.owned import owned, selector
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.rules.arguments import Ray
from app.jobplugins.rules.job_tasks import label
from app.jobplugins.wanted import Wanted
from app.wire.kinds import SERVICES
from app.wire.unstructured import Object


class RayPlugin:
    """Sets commands, declares ports, makes a Service."""

    def __init__(self, arguments: Ray, job: JobFacts) -> None:
        """``arguments`` name tasks, containers and ports."""
        self._arguments = arguments
        self._job = job
        self._ports = {
            "gcs": arguments.port,
            "dashboard": arguments.dashboard_port,
            "client-server": arguments.client_port,
        }
        head = job.job_tasks.task(arguments.head)
        self._head = job.job_tasks.first_host(head) if head is not None else ""

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """Start Ray in the container that is for it."""
        given = self._arguments
        for container in pods.containers(pod):
            name = container.get("name")
            if place.task == given.head and name == given.head_container:
                container["command"] = _shell(
                    "ray start --head --block --dashboard-host=0.0.0.0"
                    f" --port={given.port} --dashboard-port={given.dashboard_port}"
                    f" --ray-client-server-port={given.client_port}"
                )
                for port, number in self._ports.items():
                    pods.add_port(pod, container, name=port, number=number)
            elif place.task == given.worker and name == given.worker_container:
                address = f"{self._head}:{given.port}"
                container["command"] = _shell(f"ray start --block --address={address}")

    def objects(self) -> tuple[Wanted, ...]:
        """The Service before the head.

        It aims at port numbers: a container that declares one of them under another name keeps
        that name.
        """
        spec = {
            "selector": {**selector(self._job), "volcano.sh/task-spec": self._arguments.head},
            "ports": [
                {"name": name, "port": number, "targetPort": number, "protocol": "TCP"}
                for name, number in self._ports.items()
            ],
        }
        service = owned(SERVICES, label(f"{self._job.name}-head-svc"), self._job)
        return (Wanted(SERVICES, {**service, "spec": spec}),)


def _shell(command: str) -> list[str]:
    return ["sh", "-c", command]
