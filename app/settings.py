"""From the environment and flags to plain values; only the command line and ``main`` read this.

Every option is a flag with Volcano's name where Volcano has it, and a variable ``PUMICE_<NAME>``.
Times are seconds.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.kube.web_url import base_of
from app.model.names import label_problems, subdomain_problems
from app.service.activity import Activity
from app.service.limits import Hint, Limits


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"{path} is not a file" if path.exists() else f"{path} does not exist")
    return path


def address_of(text: str) -> tuple[str, int]:
    """Host and port of ``host:port`` (``:8081``: every address); ValueError when it is none."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is no address:port")
    return host.strip("[]") or "0.0.0.0", int(port)


def _address(text: str) -> str:
    if text:
        address_of(text)
    return text


def listed(text: str) -> tuple[str, ...]:
    """The names of a list separated by commas, in its order."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _with_names(text: str) -> str:
    if not listed(text):
        raise ValueError("there is no name in it")
    return text


def object_name(text: str) -> str:
    """A name that a Lease, a Secret and the like can have; ValueError for any other."""
    return _named(text, subdomain_problems(text))


def label_name(text: str) -> str:
    """The same for a namespace or a Service."""
    return _named(text, label_problems(text))


def _named(text: str, problems: Sequence[str]) -> str:
    if problems:
        raise ValueError(f"{text!r} is no name: {', '.join(problems)}")
    return text


def _in_capitals(level: object) -> object:
    return level.upper() if isinstance(level, str) else level


ExistingFile = Annotated[Path, AfterValidator(_existing)]
Address = Annotated[str, AfterValidator(_address)]
"""``host:port``, or empty."""
Names = Annotated[str, AfterValidator(_with_names)]
"""At least one name, separated by commas."""
ObjectName = Annotated[str, AfterValidator(object_name)]
LabelName = Annotated[str, AfterValidator(label_name)]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(_in_capitals)]


class ProcessSettings(BaseSettings):
    """What can be set on every process."""

    model_config = SettingsConfigDict(
        env_prefix="PUMICE_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    kubeconfig: ExistingFile | None = None
    scheduler_name: Names = "volcano"
    """Scheduler names that are ours; the first is that of jobs which name none."""
    kube_api_qps: float = Field(default=2000.0, gt=0)
    kube_api_burst: int = Field(default=2000, gt=0)
    leader_elect: bool = True
    leader_elect_resource_name: ObjectName
    leader_elect_resource_namespace: LabelName = "pumice-system"
    log_level: LogLevel = "INFO"
    log_format: Literal["text", "json"] = "text"

    def schedulers(self) -> tuple[str, ...]:
        """The scheduler names that are ours, in the order given."""
        return listed(self.scheduler_name)


class ExtenderSettings(ProcessSettings):
    """Everything that can be set on ``pumice extender``."""

    scheduler_conf: ExistingFile | None = None
    default_queue: str = Field(default="default", min_length=1)
    bind_address: str = "127.0.0.1"
    port: int = Field(default=8890, ge=0, le=65535)
    listen_address: Address = ""
    """A second ``address:port`` for all that changes nothing: slots, reasons, health, metrics."""
    tls_cert_file: ExistingFile | None = None
    tls_private_key_file: ExistingFile | None = None
    client_ca_file: ExistingFile | None = None
    """With it, clients must show a certificate it signed (mutual TLS)."""
    leader_elect_resource_name: ObjectName = "pumice-scheduler"
    leader_identity: str = ""
    """Start of the Lease's holder name when our kube-scheduler leads; empty: the host name."""
    placement: Hint = Hint.AUTO
    barrier_timeout: float = Field(default=20.0, gt=0)
    barrier_limit: float = Field(default=45.0, gt=0)
    planned_timeout: float = Field(default=30.0, gt=0)
    prebind_timeout: float = Field(default=300.0, gt=0)
    slot_timeout: float = Field(default=60.0, gt=0)
    veto_time: float = Field(default=60.0, ge=0)
    protect_above: int = Field(default=36, ge=0)
    urgency: int = Field(default=20, ge=0, le=20)
    """By how much the niceness is lowered, where that is permitted."""
    bind_foreign_pods: bool = False
    """Whether pods of other schedulers are bound too: kube-scheduler sends them in form C only."""
    front: bool = True
    """Whether a process of its own answers Filter for pods that have their places."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_private_key_file is None):
            raise ValueError("--tls-cert-file and --tls-private-key-file go together")
        if self.client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("--client-ca-file needs --tls-cert-file")
        return self

    @property
    def has_front(self) -> bool:
        """Whether there is such a process: none where calls come over TLS, which ends here, and
        none but on Linux, where connections pass from process to process."""
        return self.front and self.tls_cert_file is None and sys.platform == "linux"

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
            prebind_s=self.prebind_timeout,
            slot_s=self.slot_timeout,
            veto_s=self.veto_time,
            protect_above=self.protect_above,
            hint=self.placement,
            binds_foreign=self.bind_foreign_pods,
        )


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
    leader_elect_resource_name: ObjectName = "pumice-controllers"
    healthz_address: Address = "127.0.0.1:11252"
    listen_address: Address = ""
    """Where ``/metrics`` is served too; empty: only beside the health checks."""

    @field_validator("extender_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        return base_of(url) if url else ""
