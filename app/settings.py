"""From the environment and flags to plain values; only the command line and ``main`` read this.

Every option is a flag with Volcano's name where Volcano has it, and a variable ``PUMICE_<NAME>``.
Times are seconds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.service.activity import Activity
from app.service.limits import Hint, Limits

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LogFormat = Literal["text", "json"]


class ExtenderSettings(BaseSettings):
    """Everything that can be set on ``pumice extender``."""

    model_config = SettingsConfigDict(
        env_prefix="PUMICE_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    kubeconfig: Path | None = None
    scheduler_conf: Path | None = None
    scheduler_name: str = "volcano"
    """Scheduler names that are ours, separated by commas."""
    default_queue: str = Field(default="default", min_length=1)
    bind_address: str = "127.0.0.1"
    port: int = Field(default=8890, ge=0, le=65535)
    listen_address: str = ""
    """A second ``address:port`` for all that changes nothing: slots, reasons, health, metrics."""
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
    barrier_limit: float = Field(default=45.0, gt=0)
    planned_timeout: float = Field(default=30.0, gt=0)
    slot_timeout: float = Field(default=60.0, gt=0)
    veto_time: float = Field(default=60.0, ge=0)
    protect_above: int = Field(default=36, ge=0)
    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"

    @field_validator(
        "kubeconfig", "scheduler_conf", "tls_cert_file", "tls_private_key_file", "client_ca_file"
    )
    @classmethod
    def _is_file(cls, path: Path | None) -> Path | None:
        return existing_file(path)

    @field_validator("listen_address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        if text:
            address_of(text)
        return text

    @field_validator("scheduler_name")
    @classmethod
    def _has_names(cls, names: str) -> str:
        if not names_in(names):
            raise ValueError("there is no name in it")
        return names

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, level: object) -> object:
        return level.upper() if isinstance(level, str) else level

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_private_key_file is None):
            raise ValueError("--tls-cert-file and --tls-private-key-file go together")
        if self.client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("--client-ca-file needs --tls-cert-file")
        return self

    def scheduler_names(self) -> frozenset[str]:
        """The scheduler names that are ours."""
        return names_in(self.scheduler_name)

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
            barrier_limit_s=self.barrier_limit,
            planned_s=self.planned_timeout,
            slot_s=self.slot_timeout,
            veto_s=self.veto_time,
            protect_above=self.protect_above,
            hint=self.placement,
        )


class ControllersSettings(BaseSettings):
    """Everything that can be set on ``pumice controllers``."""

    model_config = SettingsConfigDict(
        env_prefix="PUMICE_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    kubeconfig: Path | None = None
    scheduler_name: str = "volcano"
    """Scheduler names that are ours, separated by commas."""
    controllers: str = "*"
    """Which ones run: names, ``*`` for all, ``-name`` for all but that one."""
    extender_url: str = ""
    """Where slots are asked for; empty: pods of jobs are created behind the gate."""
    kube_api_qps: float = Field(default=2000.0, gt=0)
    kube_api_burst: int = Field(default=2000, gt=0)
    worker_threads: int = Field(default=256, gt=0, le=1000)
    """Jobs looked at at once; a worker waits while the pods of its job are created."""
    worker_threads_for_podgroup: int = Field(default=5, gt=0, le=1000)
    worker_threads_for_queue: int = Field(default=5, gt=0, le=1000)
    worker_threads_for_gc: int = Field(default=5, gt=0, le=1000)
    worker_threads_for_cronjob: int = Field(default=3, gt=0, le=1000)
    max_requeue_num: int = Field(default=15, ge=-1)
    """Failures in a row after which a job is given up; -1: never."""
    inherit_owner_annotations: bool = True
    leader_elect: bool = True
    leader_elect_resource_name: str = "pumice-controllers"
    leader_elect_resource_namespace: str = "pumice-system"
    healthz_address: str = "127.0.0.1:11252"
    listen_address: str = ""
    """Where ``/metrics`` is served too; empty: only beside the health checks."""
    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"

    @field_validator("kubeconfig")
    @classmethod
    def _is_file(cls, path: Path | None) -> Path | None:
        return existing_file(path)

    @field_validator("scheduler_name")
    @classmethod
    def _has_names(cls, names: str) -> str:
        if not names_in(names):
            raise ValueError("there is no name in it")
        return names

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, level: object) -> object:
        return level.upper() if isinstance(level, str) else level

    @field_validator("healthz_address", "listen_address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        if text:
            address_of(text)
        return text

    @field_validator("extender_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r} is no http or https URL")
        return url.rstrip("/")

    def scheduler_names(self) -> frozenset[str]:
        """The scheduler names that are ours."""
        return names_in(self.scheduler_name)

    def scheduler_list(self) -> tuple[str, ...]:
        """The same, in the order given; the first is the one of jobs that name none."""
        return tuple(name.strip() for name in self.scheduler_name.split(",") if name.strip())


def existing_file(path: Path | None) -> Path | None:
    """``path``; ValueError when there is no such file."""
    if path is not None and not path.is_file():
        raise ValueError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    return path


def address_of(text: str) -> tuple[str, int]:
    """Host and port of ``host:port`` (``:8081``: every address); ValueError when it is none."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is no address:port")
    return host.strip("[]") or "0.0.0.0", int(port)


def names_in(text: str) -> frozenset[str]:
    """The names of a list separated by commas."""
    return frozenset(name.strip() for name in text.split(",") if name.strip())
