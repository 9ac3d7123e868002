"""Everything that can be set on ``pumice all``: the variables of its three parts, and its own.

Where two parts have one name for two things, it is the extender's here: address and port, and the
second address. Each part keeps the Lease it has alone, and certificates are the webhooks'.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import Field

from app.settings.controllers import ControllersSettings
from app.settings.extender import ExtenderSettings
from app.settings.process import ProcessSettings
from app.settings.webhooks import WebhookSettings

_LEASE = "leader_elect_resource_name"
_NO_TLS = {"tls_cert_file": None, "tls_private_key_file": None, "client_ca_file": None}
_NO_ADDRESS = {"extender_url": "", "listen_address": ""}

S = TypeVar("S", bound=ProcessSettings)


class TogetherSettings(ProcessSettings):
    """The options that only this command has."""

    leader_elect_resource_name: str = ""
    webhooks: bool = True
    webhook_bind_address: str = "0.0.0.0"
    webhook_port: int = Field(default=8443, ge=0, le=65535)


TOGETHER: Final = (TogetherSettings, ExtenderSettings, ControllersSettings, WebhookSettings)
"""The settings in the order of their defaults: the first that has an option gives its default."""


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
