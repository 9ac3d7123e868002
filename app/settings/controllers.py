"""Everything that can be set on ``pumice controllers``."""

from pydantic import field_validator

from app.kube.web_url import base_of
from app.settings.process import Address, ObjectName, ProcessSettings, option


class ControllersSettings(ProcessSettings):
    """Everything that can be set on ``pumice controllers``."""

    controllers: str = option(
        "*", text="Which run: * for all, a name for one, -name to leave one out; comma separated"
    )
    extender_url: str = option(
        "",
        text="Where slots for pods of jobs are asked for; without it pods are created behind the "
        "gate",
    )
    worker_threads: int = option(256, gt=0, le=1000, text="Jobs looked at at once")
    worker_threads_for_podgroup: int = option(
        32, gt=0, le=1000, text="Plain pods looked at at once"
    )
    worker_threads_for_queue: int = option(5, gt=0, le=1000, text="Queues looked at at once")
    worker_threads_for_gc: int = option(5, gt=0, le=1000, text="Finished jobs looked at at once")
    worker_threads_for_cronjob: int = option(3, gt=0, le=1000, text="CronJobs looked at at once")
    max_requeue_num: int = option(
        15,
        ge=-1,
        text="How often a job tries again whose pods, or what else it needs, are refused, before "
        "it is ended; -1: without end",
    )
    inherit_owner_annotations: bool = option(
        True,
        text="PodGroups get the volcano.sh/ and pumice.sh/stranded- annotations of their pods' "
        "owners, and heed group-min-member",
    )
    discovery_config_map: ObjectName = option(
        "volcano-controller-configmap",
        text="ConfigMap in the Lease's namespace that says which HyperNodes are discovered",
    )
    leader_elect_resource_name: ObjectName = option("pumice-controllers", text="Name of the Lease")
    healthz_address: Address = option(
        "127.0.0.1:11252", text="address:port of the controllers' /healthz, /readyz and /metrics"
    )
    listen_address: Address = option("", text="A second address:port of these")

    @field_validator("extender_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        return base_of(url) if url else ""
