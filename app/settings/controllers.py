"""Everything that can be set on ``pumice controllers``."""

from pydantic import Field, field_validator

from app.kube.web_url import base_of
from app.settings.process import Address, ObjectName, ProcessSettings


class ControllersSettings(ProcessSettings):
    """Everything that can be set on ``pumice controllers``."""

    controllers: str = "*"
    """Which ones run: names, ``*`` for all, ``-name`` for all but that one."""
    extender_url: str = ""
    """Where slots are asked for; empty: pods of jobs are created behind the gate."""
    worker_threads: int = Field(default=256, gt=0, le=1000)
    """Jobs looked at at once; a worker waits while the pods of its job are created."""
    worker_threads_for_podgroup: int = Field(default=32, gt=0, le=1000)
    worker_threads_for_queue: int = Field(default=5, gt=0, le=1000)
    worker_threads_for_gc: int = Field(default=5, gt=0, le=1000)
    worker_threads_for_cronjob: int = Field(default=3, gt=0, le=1000)
    max_requeue_num: int = Field(default=15, ge=-1)
    """Repeats after which a job is given up that is refused what it needs; -1: never."""
    inherit_owner_annotations: bool = True
    discovery_config_map: ObjectName = "volcano-controller-configmap"
    """Says which HyperNodes are discovered; it is in the namespace of the Lease."""
    leader_elect_resource_name: ObjectName = "pumice-controllers"
    healthz_address: Address = "127.0.0.1:11252"
    listen_address: Address = ""
    """Where ``/metrics`` is served too; empty: only beside the health checks."""

    @field_validator("extender_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        return base_of(url) if url else ""
