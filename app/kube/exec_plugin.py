"""Credentials by a command (``exec``), as managed clusters hand them out.

The `kubernetes` package runs the command; a command that fails is an error here, where the package
would go on without credentials.
"""

import math
import time
from pathlib import Path
from typing import Any, Final

from kubernetes.config import ConfigException
from kubernetes.config.dateutil import parse_rfc3339
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode

from app.kube.limiter import Clock
from app.kube.login import Certificate, Given
from app.kube.unusable import why

EARLY_S: Final = 60.0
"""How long before a credential expires it is replaced.

Longer than headers are kept for the writes.
"""


class ExecPlugin:
    """The command that a kubeconfig names."""

    def __init__(
        self,
        wanted: ConfigNode,
        *,
        cluster: ConfigNode,
        folder: Path,
        wall: Clock = time.time,  # noqa: TID251 - tokens expire by the clock that people set
    ) -> None:
        self._provider = ExecProvider(wanted, str(folder), cluster)  # type: ignore[no-untyped-call]
        self._command = wanted["command"]
        self._wall = wall

    def run(self) -> Given:
        """Run the plugin; raises `ConfigException`."""
        try:
            given = self._read(self._provider.run())  # type: ignore[no-untyped-call]
        except (AttributeError, TypeError) as error:
            # The package stumbles over a failure whose reason the terminal got instead of us, and
            # both of us over an answer of another shape.
            raise self._failure("it failed, or printed no ExecCredential") from error
        except (LookupError, ValueError) as error:
            raise self._failure(f"it printed no ExecCredential ({error})") from error
        except (ConfigException, OSError) as error:
            raise self._failure(why(error)) from error
        if not given.token and given.certificate is None:
            raise self._failure("it gave neither a token nor a certificate with its key")
        return given

    def _read(self, status: dict[str, Any]) -> Given:
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        return Given(
            token=str(status.get("token") or ""),
            certificate=Certificate(str(certificate), str(key)) if certificate and key else None,
            keep_s=self._keep_s(status.get("expirationTimestamp")),
        )

    def _keep_s(self, expires: str | None) -> float:
        if not expires:
            return math.inf
        return float(parse_rfc3339(expires).timestamp()) - EARLY_S - self._wall()  # type: ignore[no-untyped-call]

    def _failure(self, why: str) -> ConfigException:
        return ConfigException(f"the plugin {self._command} gives no credentials: {why}")
