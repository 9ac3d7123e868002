"""A Unified Fabric Manager that answers as its documentation shows, over TLS on 127.0.0.1."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.clusters.client import Object
from tests.kube.server import ScriptedServer
from tests.kube.tls import self_signed

USER, PASSWORD = "admin", "123456"
_PORTS = "/ufmRest/resources/ports"
_LOGIN = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"

Link = tuple[str, str]
"""A computer, and the leaf switch that it is connected to."""


class Ufm:
    """Started by `with`; what it tells is set by `tell`."""

    def __init__(self, folder: Path) -> None:
        tls, authority = self_signed(folder)
        self.authority = authority.decode()
        self._server = ScriptedServer(tls)
        self._answer: Any = []
        self._status = 200

    @property
    def endpoint(self) -> str:
        """Its address."""
        return self._server.base

    def tell(self, links: Iterable[Link]) -> None:
        """Answer with the ports of both ends of these links."""
        self._status = 200
        self._answer = [port for link in links for port in _ports(*link)]

    def fail(self, status: int) -> None:
        """Answer with an error."""
        self._status = status

    def secret(self, name: str) -> Object:
        """Its user and its authority."""
        given = {"username": USER, "password": PASSWORD, "ca.crt": self.authority}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in given.items()}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._server.on("GET", _PORTS, self._list)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.end()

    async def _list(self, _: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("authorization") != _LOGIN:
            return web.Response(status=401)
        if self._status != 200:
            return web.Response(status=self._status)
        return web.json_response(self._answer)


def _ports(computer: str, leaf: str) -> Iterable[Object]:
    yield _port("Computer IB Port", computer, leaf, tier=4, path=f"Computer: {computer} / HCA-1/1")
    yield _port("Switch IB Port", leaf, computer, tier=3, path=f"Switch: {leaf} / 1/26/2")


def _port(description: str, system: str, peer: str, *, tier: int, path: str) -> Object:
    return {
        "description": description,
        "number": 1,
        "external_number": 1,
        "physical_state": "Link Up",
        "path": f"default(5) / {path}",
        "tier": tier,
        "high_ber_severity": "N/A",
        "lid": 34,
        "mirror": "disable",
        "logical_state": "Active",
        "capabilities": ["reset", "healthy_operations", "disable", "get_cables_info"],
        "mtu": 4096,
        "peer_port_dname": "N/A",
        "severity": "Info",
        "active_speed": "NDR",
        "enabled_speed": [],
        "supported_speed": [],
        "active_width": "4x",
        "dname": "1/26/2",
        "peer_node_name": peer,
        "system_name": system,
        "node_description": f"{system} mlx5_0",
    }
