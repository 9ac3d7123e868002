"""Everything that can be set on ``pumice all``: the variables of its three parts, and its own.

Where two parts have one name for two things, it is the extender's here: address and port, and the
second address. Each part keeps the Lease it has alone, and certificates are the webhooks'.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from app.settings.controllers import ControllersSettings
from app.settings.extender import ExtenderSettings
from app.settings.process import LabelName, ProcessSettings, option
from app.settings.webhooks import WebhookSettings

_LEASE = "leader_elect_resource_name"
_NO_TLS = {"tls_cert_file": None, "tls_private_key_file": None, "client_ca_file": None}
_NO_ADDRESS = {"extender_url": "", "listen_address": ""}

S = TypeVar("S", bound=ProcessSettings)


class TogetherSettings(ProcessSettings):
    """The options that only this command has."""

    leader_elect: bool = option(True, text="Work only while leading, each part for itself")
    leader_elect_resource_name: str = option("", text="Each part has its own")
    leader_elect_resource_namespace: LabelName = option(
        "pumice-system", text="Namespace of the Leases"
    )
    kube_api_qps: float = option(
        2000.0, gt=0, text="Requests a second, of each part", told="2000, the webhooks' 50"
    )
    kube_api_burst: int = option(
        2000, gt=0, text="Requests at once, of each part", told="2000, the webhooks' 100"
    )
    webhooks: bool = option(True, text="Whether webhooks are served")
    webhook_bind_address: str = option("0.0.0.0", text="Address of the webhooks")
    webhook_port: int = option(8443, ge=0, le=65535, text="Port of the webhooks")


TOGETHER: Final = (TogetherSettings, ExtenderSettings, ControllersSettings, WebhookSettings)
"""The settings in the order of their defaults: the first that has an option tells of it."""
OPTIONS: Final = (
    "kubeconfig",
    "scheduler_conf",
    "scheduler_name",
    "default_queue",
    "namespace",
    "bind_address",
    "port",
    "listen_address",
    "healthz_address",
    "webhooks",
    "webhook_bind_address",
    "webhook_port",
    "public_url",
    "leader_elect",
    "leader_elect_resource_namespace",
    "kube_api_qps",
    "kube_api_burst",
    "log_level",
    "log_format",
)
"""What is an option of the command; all else has only its variable."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The settings of each part; no webhooks: None."""

    extender: ExtenderSettings
    controllers: ControllersSettings
    webhooks: WebhookSettings | None


def roles_of(**given: Any) -> Roles:
    """The settings of each part from flags and environment. Raises ValidationError."""
    own = TogetherSettings(**given)
    where = {"bind_address": own.webhook_bind_address, "port": own.webhook_port}
    return Roles(
        extender=_settings(ExtenderSettings, given, _NO_TLS),
        controllers=_settings(ControllersSettings, given, _NO_ADDRESS),
        webhooks=_settings(WebhookSettings, given, where) if own.webhooks else None,
    )


def _settings(kind: type[S], given: Mapping[str, Any], fixed: Mapping[str, Any]) -> S:
    lease = kind.model_fields[_LEASE].default
    return kind(**{**given, **fixed, _LEASE: lease})
