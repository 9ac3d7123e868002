"""Everything that can be set on ``pumice extender``."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

from pydantic import model_validator

from app.service.activity import Activity
from app.service.limits import Limits, PlacementHint
from app.settings.process import (
    Address,
    ExistingFile,
    LabelName,
    ObjectName,
    ProcessSettings,
    option,
)


class ExtenderSettings(ProcessSettings):
    """Everything that can be set on ``pumice extender``."""

    scheduler_conf: ExistingFile | None = option(
        None, text="volcano-scheduler.conf; reloaded when it changes", told="Volcano's"
    )
    default_queue: str = option(
        "default",
        min_length=1,
        text="Queue of single pods that name none, nor does their namespace; made when missing",
    )
    namespace: LabelName = option(
        "pumice-system", text="Namespace of Pumice: evictions that have begun are noted there"
    )
    bind_address: str = option("127.0.0.1", text="Address of the extender")
    port: int = option(8890, ge=0, le=65535, text="Port of the extender")
    listen_address: Address = option(
        "",
        text="A second address:port of the extender, for requests that only read: slots, reasons, "
        "health, metrics",
    )
    anonymous_reads: bool = option(
        False, text="Tell reasons and /debug beyond loopback to readers without a token"
    )
    token_audience: str = option(
        "", text="Audience that readers' tokens must have", told="the API server"
    )
    hide_other_namespaces: bool = option(
        False, text="Name no object of another namespace in conditions and events"
    )
    tls_cert_file: ExistingFile | None = option(None, text="Certificate, to serve HTTPS with")
    tls_private_key_file: ExistingFile | None = option(None, text="Key of the certificate")
    client_ca_file: ExistingFile | None = option(
        None, text="Clients must show a certificate signed by this CA"
    )
    leader_elect: bool = option(True, text="Decide only while our kube-scheduler leads")
    leader_elect_resource_name: ObjectName = option(
        "pumice-scheduler", text="Name of kube-scheduler's Lease"
    )
    leader_elect_resource_namespace: LabelName = option(
        "pumice-system", text="Namespace of kube-scheduler's Lease"
    )
    leader_identity: str = option("", text="Start of the Lease's holder name", told="the host name")
    placement: PlacementHint = option(PlacementHint.AUTO, text="How a gated pod is told its place")
    barrier_timeout: float = option(
        20.0, gt=0, text="Seconds a gang waits at Bind for its next member"
    )
    barrier_limit: float = option(
        45.0, gt=0, text="Seconds a Bind is held at most; below httpTimeout (60 s)"
    )
    planned_timeout: float = option(30.0, gt=0, text="Seconds a planned pod may take to be bound")
    prebind_timeout: float = option(
        300.0,
        gt=0,
        text="Seconds a planned pod may take to be bound while kube-scheduler waits for its "
        "volumes or devices; the gang's room is kept",
    )
    slot_timeout: float = option(
        60.0,
        gt=0,
        text="Seconds room is kept for pods that are not created yet, counted from the last pod "
        "that came; for a job's gang that has lost a member as long as the job exists",
    )
    veto_time: float = option(
        60.0,
        ge=0,
        text="Seconds at most that a node is avoided which another filter refuses again and again",
    )
    eviction_rate: float = option(100.0, gt=0, text="Evictions a second, at most")
    eviction_patience: float = option(
        60.0, gt=0, text="Seconds after its grace period in which an evicted pod must go"
    )
    protect_above: int = option(
        36,
        ge=0,
        text="Number of waiting pods without a gate above which the extender answers these pods "
        "with errors",
    )
    urgency: int = option(
        20,
        ge=0,
        le=20,
        text="By how much the niceness of the extender is lowered; above 0 the front takes a "
        "real-time priority. Both only where permitted",
    )
    bind_foreign_pods: bool = option(
        False, text="Bind pods of other schedulers too: form C sends them"
    )
    front: bool = option(
        True,
        text="A process of its own answers Filter for pods with a place; never over TLS, and on "
        "Linux only",
    )
    audit_dir: Path | None = option(
        None, text="Folder that keeps decisions; without one they go with the process"
    )
    audit_size: int = option(
        256, ge=1, text="MiB that kept decisions take at most; without a folder no more than 8"
    )
    audit_days: float = option(30.0, gt=0, text="Days for which decisions are kept")
    record_size: int = option(
        32, ge=0, text="MiB of memory for what pumice record tells; 0: nothing is kept for it"
    )

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_private_key_file is None):
            raise ValueError("--tls-cert-file and --tls-private-key-file go together")
        if self.client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("--client-ca-file needs --tls-cert-file")
        return self

    @property
    def has_front(self) -> bool:
        """Whether a front runs.

        The front reads no TLS. Connections pass from process to process on Linux only.
        """
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
