"""Everything that can be set on ``pumice webhooks``: flags and ``PUMICE_`` variables."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from app.kube.web_url import secure_base_of
from app.model.workload import DEEPEST_QUEUE
from app.settings.process import (
    ExistingFile,
    LabelName,
    Names,
    ObjectName,
    ProcessSettings,
    listed,
    option,
)

ENABLED = (
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/podgroups/validate,/pods/mutate,"
    "/pods/validate,/queues/mutate,/queues/validate,/hypernodes/validate,/jobflows/validate,"
    "/cronjobs/validate,/colocationconfigurations/validate"
)

QUEUE_GATES = "SchedulingGatesQueueAdmission"


class WebhookSettings(ProcessSettings):
    """The options, with Volcano's names where it has them."""

    bind_address: str = option(
        "0.0.0.0", text="Address of the webhooks; 0.0.0.0 and :: are all addresses, of IPv6 too"
    )
    port: int = option(8443, ge=0, le=65535, text="Port of the webhooks")
    tls_cert_file: ExistingFile | None = option(
        None, text="Certificate; without one it is made, and renewed"
    )
    tls_private_key_file: ExistingFile | None = option(None, text="Key of the certificate")
    ca_cert_file: ExistingFile | None = option(
        None, text="Authority that signed the certificate; the API server is told of it"
    )
    public_url: str = option(
        "",
        flags=("--webhook-url",),
        text="https://host:port at which the API server finds the webhooks, instead of the Service",
    )
    webhook_namespace: LabelName = option(
        "pumice-system", text="Namespace of the Service and of our Secret"
    )
    webhook_service_name: LabelName = option("pumice-webhooks", text="Name of the Service")
    webhook_service_port: int = option(443, ge=1, le=65535, text="Port of the Service")
    webhook_configuration_name: ObjectName = option(
        "pumice-webhooks", text="Name of the webhook configurations"
    )
    certificate_secret: ObjectName = option(
        "pumice-webhooks-certificate", text="Secret that keeps certificates we make"
    )
    register_webhooks: bool = option(True, text="Write the webhook configurations")
    failure_policy: Literal["Ignore", "Fail"] = option(
        "Ignore", text="Ignore or Fail: what happens while no webhook answers"
    )
    enabled_admission: Names = option(
        ENABLED, text="Paths of the webhooks, comma separated", told="all"
    )
    admission_conf: ExistingFile | None = option(
        None, text="Resource groups of pods; reloaded when it changes"
    )
    max_queue_depth: int = option(5, ge=1, le=DEEPEST_QUEUE, text="Levels of queues below the root")
    enable_root_queue_protection: bool = option(
        True, text="Refuse changes of the root queue's resources"
    )
    enable_queue_allocated_pods_check: bool = option(
        False, text="Refuse to delete queues that have pods"
    )
    loose_volumes: bool = option(
        False,
        text="Only warn of volumes of jobs with no claim or two, as Volcano's first releases took "
        "them; take them out of manifests/policy/validate-jobs.yaml too",
    )
    gate_pods: bool = option(
        False, text="Gate pods, for API servers without mutating admission policies"
    )
    feature_gates: str = option(
        "",
        text="SchedulingGatesQueueAdmission=true lets pods ask for Volcano's gate; others mean "
        "nothing",
    )
    leader_elect: bool = option(True, text="Keep certificates only while holding the Lease")
    leader_elect_resource_name: ObjectName = option("pumice-webhooks", text="Name of the Lease")
    kube_api_qps: float = option(50.0, gt=0, text="Requests to the API server a second")
    kube_api_burst: int = option(100, gt=0, text="Requests to the API server at once")

    @field_validator("public_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        return secure_base_of(url) if url else ""

    @field_validator("feature_gates")
    @classmethod
    def _are_switches(cls, gates: str) -> str:
        for gate in listed(gates):
            name, equals, value = gate.partition("=")
            if not name or not equals or value.lower() not in {"true", "false"}:
                raise ValueError(f"{gate!r} is not Name=true or Name=false")
        return gates

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_private_key_file is None):
            raise ValueError("--tls-cert-file and --tls-private-key-file go together")
        if self.ca_cert_file is not None and self.tls_cert_file is None:
            raise ValueError("--ca-cert-file needs --tls-cert-file")
        return self

    def paths(self) -> tuple[str, ...]:
        """The enabled webhooks."""
        return listed(self.enabled_admission)

    def queue_gates(self) -> bool:
        """Whether the queue's own gate is added."""
        gates = dict(gate.split("=", 1) for gate in listed(self.feature_gates))
        return gates.get(QUEUE_GATES, "").lower() == "true"

    def server_names(self) -> tuple[str, ...]:
        """The names that a certificate of ours is for."""
        service = f"{self.webhook_service_name}.{self.webhook_namespace}"
        names = [f"{service}.svc", f"{service}.svc.cluster.local", service]
        host = urlsplit(self.public_url).hostname
        return tuple([host, *names] if host else names)
