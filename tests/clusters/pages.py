"""What the extender serves beside kube-scheduler's calls: debug pages, probes, metrics."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.clusters.client import WITHOUT_TLS


class Pages:
    """The pages at `url`."""

    url: str

    def get(self, path: str) -> Any:
        """JSON of a page; anything but success is an error."""
        response = _asked("GET", f"{self.url}{path}", timeout=20)
        response.raise_for_status()
        return response.json()

    def post(self, path: str, body: Any) -> Any:
        """JSON of the answer to a question; anything but success is an error."""
        response = _asked("POST", f"{self.url}{path}", json=body, timeout=30)
        assert response.status_code == httpx2.codes.OK, response.text
        return response.json()

    def text(self, path: str) -> str:
        """What a page says, whatever its status."""
        return _asked("GET", f"{self.url}{path}", timeout=20).text

    def status(self, path: str) -> int:
        """Status code of a page, 0 when nobody answers."""
        try:
            return _asked("GET", f"{self.url}{path}", timeout=5).status_code
        except httpx2.TransportError:
            return 0

    def metrics(self) -> dict[str, float]:
        """Samples of `/metrics` by name with labels."""
        text = _asked("GET", f"{self.url}/metrics", timeout=20).text
        lines = (line for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def _asked(method: str, url: str, **more: Any) -> httpx2.Response:
    return httpx2.request(method, url, verify=WITHOUT_TLS, trust_env=False, **more)
