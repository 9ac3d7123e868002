"""env: every container knows the index of its pod within the task."""

from app.jobplugins import pods
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.rules.arguments import Env
from app.jobplugins.wanted import Wanted
from app.wire.unstructured import Object

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class EnvPlugin:
    """Adds variables."""

    def __init__(self, _arguments: Env, _job: JobFacts) -> None:
        """There is nothing to choose."""

    def pod(self, pod: Object, place: PodOfJob) -> None:
        """Both variables, in all containers."""
        index = str(place.index)
        variables = [pods.variable(name, index) for name in VARIABLES]
        pods.add_variables(pods.all_containers(pod), variables)

    def objects(self) -> tuple[Wanted, ...]:
        """None."""
        return ()
