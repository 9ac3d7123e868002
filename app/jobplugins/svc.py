"""svc: the pods of a job find each other by name.

A headless Service named as the job gives ``<hostname>.<subdomain>`` an address for each pod; a
ConfigMap lists these names by task, as files under ``/etc/volcano`` and as variables; a
NetworkPolicy keeps other pods out. The lists follow the job's replicas: files in running pods
change with them, variables are those of the moment a pod starts.

In the ConfigMap a task's file is called as Volcano calls it, with ``_`` for ``-``, and by the
task's own name where that differs.
"""

from app.jobplugins import pods
from app.jobplugins.owned import owned, selector
from app.jobplugins.plugin import JobFacts, PodOfJob
from app.jobplugins.rules.arguments import Svc
from app.jobplugins.rules.job_tasks import label, variable
from app.jobplugins.wanted import Wanted
from app.wire.kinds import CONFIG_MAPS, NETWORK_POLICIES, SERVICES
from app.wire.unstructured import Object

MOUNT_PATH = "/etc/volcano"


class SvcPlugin:
    """Sets names, and makes what resolves and lists them."""

    def __init__(self, arguments: Svc, job: JobFacts) -> None:
        """``arguments`` choose what is left out."""
        self._arguments = arguments
        self._job = job
        self._config_map = f"{job.name}-svc"
        self._volume = label(self._config_map)
        self._variables = self._references() if arguments.inject_hosts_env else []

    def pod(self, pod: Object, _place: PodOfJob) -> None:
        """Names, lists as files, lists as variables."""
        spec = pod["spec"]
        if not spec.get("hostname"):
            spec["hostname"] = label(pod["metadata"]["name"])
        if not spec.get("subdomain"):
            spec["subdomain"] = label(self._job.name)
        pods.add_variables(pods.all_containers(pod), self._variables)
        volume = {"name": self._volume, "configMap": {"name": self._config_map}}
        pods.add_volume(pod, volume, {"name": self._volume, "mountPath": MOUNT_PATH})

    def objects(self) -> tuple[Wanted, ...]:
        """ConfigMap, Service, NetworkPolicy."""
        lists = Wanted(
            CONFIG_MAPS,
            owned(CONFIG_MAPS, self._config_map, self._job),
            follows=host_lists(self._job),
        )
        policy = (Wanted(NETWORK_POLICIES, self._network_policy()),)
        return (
            lists,
            Wanted(SERVICES, self._service()),
            *(() if self._arguments.disable_network_policy else policy),
        )

    def _service(self) -> Object:
        spec = {
            "clusterIP": "None",
            "selector": selector(self._job),
            "publishNotReadyAddresses": self._arguments.publish_not_ready_addresses,
        }
        return {**owned(SERVICES, label(self._job.name), self._job), "spec": spec}

    def _network_policy(self) -> Object:
        of_job = {"podSelector": {"matchLabels": selector(self._job)}}
        spec = {**of_job, "ingress": [{"from": [of_job]}], "policyTypes": ["Ingress"]}
        return {**owned(NETWORK_POLICIES, self._job.name, self._job), "spec": spec}

    def _references(self) -> list[Object]:
        return [
            {
                "name": name,
                "valueFrom": {"configMapKeyRef": {"name": self._config_map, "key": name}},
            }
            for task in self._job.job_tasks.tasks
            for name in variable_names(task.name)
        ]


def variable_names(task: str) -> tuple[str, str]:
    """The variables with a task's hosts, and how many there are."""
    return f"VC_{variable(task)}_HOSTS", f"VC_{variable(task)}_NUM"


def host_lists(job: JobFacts) -> dict[str, str]:
    """The data of the ConfigMap."""
    data: dict[str, str] = {}
    for task in job.job_tasks.tasks:
        hosts = job.job_tasks.hosts(task)
        lines = "\n".join(hosts)
        data[f"{task.name.replace('-', '_')}.host"] = lines
        data[f"{task.name}.host"] = lines
        list_name, count_name = variable_names(task.name)
        data[list_name] = ",".join(hosts)
        data[count_name] = str(len(hosts))
    return data
