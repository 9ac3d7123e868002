"""Everything that can be set on ``pumice extender``."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from app.service.activity import Activity
from app.service.limits import Limits, PlacementHint
from app.settings.process import Address, ExistingFile, LabelName, ObjectName, ProcessSettings


class ExtenderSettings(ProcessSettings):
    """Everything that can be set on ``pumice extender``."""

    scheduler_conf: ExistingFile | None = None
    default_queue: str = Field(default="default", min_length=1)
    namespace: LabelName = "pumice-system"
    """Of the installation: what is being evicted is noted there."""
    bind_address: str = "127.0.0.1"
    port: int = Field(default=8890, ge=0, le=65535)
    listen_address: Address = ""
    """A second ``address:port`` for all that changes nothing: slots, reasons, health, metrics."""
    anonymous_reads: bool = False
    """Whether reasons and ``/debug`` are told beyond loopback without a token."""
    token_audience: str = ""
    """The audience that tokens must have; empty: the API server."""
    hide_other_namespaces: bool = False
    """Whether conditions and events name no object of another namespace."""
    tls_cert_file: ExistingFile | None = None
    tls_private_key_file: ExistingFile | None = None
    client_ca_file: ExistingFile | None = None
    """The authority of clients: with it, clients must show a certificate it signed (mutual TLS)."""
    leader_elect_resource_name: ObjectName = "pumice-scheduler"
    leader_identity: str = ""
    """Start of the Lease's holder name when our kube-scheduler leads; empty: the host name."""
    placement: PlacementHint = PlacementHint.AUTO
    barrier_timeout: float = Field(default=20.0, gt=0)
    barrier_limit: float = Field(default=45.0, gt=0)
    planned_timeout: float = Field(default=30.0, gt=0)
    prebind_timeout: float = Field(default=300.0, gt=0)
    slot_timeout: float = Field(default=60.0, gt=0)
    veto_time: float = Field(default=60.0, ge=0)
    eviction_rate: float = Field(default=100.0, gt=0)
    eviction_patience: float = Field(default=60.0, gt=0)
    protect_above: int = Field(default=36, ge=0)
    urgency: int = Field(default=20, ge=0, le=20)
    """By how much the niceness is lowered, where that is permitted."""
    bind_foreign_pods: bool = False
    """Whether pods of other schedulers are bound too: kube-scheduler sends them in form C only."""
    front: bool = True
    """Whether a process of its own answers Filter for pods that have their places."""

    audit_dir: Path | None = None
    """Where decisions are kept; none: in a temporary folder, for as long as the process lives."""
    audit_size: int = Field(default=256, ge=1)
    """MiB at most, of which without a folder no more than 8 are used."""
    audit_days: float = Field(default=30.0, gt=0)
    record_size: int = Field(default=32, ge=0)
    """MiB that may be taken by what was decided last, for ``pumice record``; 0: none is."""

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
        """Which process leads, as far as this process knows."""
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
            evictions_per_s=self.eviction_rate,
            victim_s=self.eviction_patience,
            protect_above=self.protect_above,
            hides_other_namespaces=self.hide_other_namespaces,
            hint=self.placement,
            binds_foreign=self.bind_foreign_pods,
        )
