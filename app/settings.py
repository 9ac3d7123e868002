"""From the environment and flags to plain values; only the command line and ``main`` read this.

Every option is a flag with Volcano's name where Volcano has it, and a variable ``PUMICE_<NAME>``.
Times are seconds.
"""

from collections.abc import Callable
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.service.activity import Activity
from app.service.limits import Hint, Limits


class ExtenderSettings(BaseSettings):
    """Everything that can be set on ``pumice extender``."""

    model_config = SettingsConfigDict(env_prefix="PUMICE_", frozen=True, extra="ignore")

    kubeconfig: Path | None = None
    scheduler_conf: Path | None = None
    scheduler_name: str = "volcano"
    """Scheduler names that are ours, separated by commas."""
    default_queue: str = "default"
    bind_address: str = "127.0.0.1"
    port: int = Field(default=8890, ge=0, le=65535)
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    client_ca_file: Path | None = None
    """With it, clients must show a certificate it signed (mutual TLS)."""
    kube_api_qps: float = Field(default=2000.0, gt=0)
    kube_api_burst: int = Field(default=2000, gt=0)
    leader_elect: bool = True
    leader_elect_resource_name: str = "pumice-scheduler"
    leader_elect_resource_namespace: str = "pumice-system"
    leader_identity: str = ""
    """Start of the Lease's holder name when our kube-scheduler leads; empty: the host name."""
    placement: Hint = Hint.AUTO
    barrier_timeout: float = Field(default=20.0, gt=0)
    planned_timeout: float = Field(default=30.0, gt=0)
    slot_timeout: float = Field(default=60.0, gt=0)
    veto_time: float = Field(default=60.0, ge=0)
    protect_above: int = Field(default=36, ge=0)
    log_level: str = "INFO"
    log_format: str = "text"

    @field_validator("kubeconfig", "scheduler_conf", "tls_cert_file", "tls_private_key_file")
    @classmethod
    def _exists(cls, path: Path | None) -> Path | None:
        if path is not None and not path.exists():
            raise ValueError(f"{path} does not exist")
        return path

    def scheduler_names(self) -> frozenset[str]:
        """The scheduler names that are ours."""
        return frozenset(name.strip() for name in self.scheduler_name.split(",") if name.strip())

    def activity(self, clock: Callable[[], float], *, host: str) -> Activity:
        """Who leads, as far as this process is concerned."""
        return Activity(
            clock=clock,
            elected=self.leader_elect,
            namespace=self.leader_elect_resource_namespace,
            name=self.leader_elect_resource_name,
            identity=self.leader_identity or host,
        )

    def limits(self) -> Limits:
        """The protocol's times and counts."""
        return Limits(
            barrier_s=self.barrier_timeout,
            planned_s=self.planned_timeout,
            slot_s=self.slot_timeout,
            veto_s=self.veto_time,
            protect_above=self.protect_above,
            hint=self.placement,
        )
