"""Everything that can be set on ``pumice webhooks``: flags and ``PUMICE_`` variables."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from app.kube.web_url import secure_base_of
from app.settings.process import ExistingFile, LabelName, Names, ObjectName, ProcessSettings, listed

ENABLED = (
    "/jobs/mutate,/jobs/validate,/podgroups/mutate,/podgroups/validate,/pods/mutate,"
    "/pods/validate,/queues/mutate,/queues/validate,/hypernodes/validate,/jobflows/validate,"
    "/cronjobs/validate,/colocationconfigurations/validate"
)

QUEUE_GATES = "SchedulingGatesQueueAdmission"


class WebhookSettings(ProcessSettings):
    """The options, with Volcano's names where it has them."""

    bind_address: str = "0.0.0.0"
    port: int = Field(default=8443, ge=0, le=65535)
    tls_cert_file: ExistingFile | None = None
    tls_private_key_file: ExistingFile | None = None
    ca_cert_file: ExistingFile | None = None
    """The authority that signed the certificate, to be told to the API server."""
    public_url: str = ""
    """Where the API server finds us; empty: at the Service."""
    webhook_namespace: LabelName = "pumice-system"
    webhook_service_name: LabelName = "pumice-webhooks"
    webhook_service_port: int = Field(default=443, ge=1, le=65535)
    webhook_configuration_name: ObjectName = "pumice-webhooks"
    certificate_secret: ObjectName = "pumice-webhooks-certificate"
    """Where certificates are kept that we make, in our namespace."""
    register_webhooks: bool = True
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    enabled_admission: Names = ENABLED
    admission_conf: ExistingFile | None = None
    max_queue_depth: int = Field(default=5, ge=1)
    enable_root_queue_protection: bool = True
    enable_queue_allocated_pods_check: bool = False
    loose_volumes: bool = False
    """Only warn about volumes of jobs that today's Volcano refuses and its first releases took."""
    gate_pods: bool = False
    """Gate pods here, for API servers without mutating admission policies."""
    feature_gates: str = ""
    """Volcano's, as ``Name=true,…``; only SchedulingGatesQueueAdmission means something here."""
    leader_elect_resource_name: ObjectName = "pumice-webhooks"
    kube_api_qps: float = Field(default=50.0, gt=0)
    kube_api_burst: int = Field(default=100, gt=0)

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
