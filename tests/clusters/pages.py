"""What the extender serves beside kube-scheduler's calls: debug pages, probes, metrics."""

from __future__ import annotations

from typing import Any

import httpx2


class Pages:
    """The pages at `url`."""

    url: str

    def get(self, path: str) -> Any:
        """JSON of a page; anything but success is an error."""
        response = httpx2.get(f"{self.url}{path}", timeout=20, trust_env=False)
        response.raise_for_status()
        return response.json()

    def post(self, path: str, body: Any) -> Any:
        """JSON of the answer to a question; anything but success is an error."""
        response = httpx2.post(f"{self.url}{path}", json=body, timeout=30, trust_env=False)
        assert response.status_code == httpx2.codes.OK, response.text
        return response.json()

    def text(self, path: str) -> str:
        """What a page says, whatever its status."""
        return httpx2.get(f"{self.url}{path}", timeout=20, trust_env=False).text

    def status(self, path: str) -> int:
        """Status code of a page, 0 when nobody answers."""
        try:
            return httpx2.get(f"{self.url}{path}", timeout=5, trust_env=False).status_code
        except httpx2.TransportError:
            return 0

    def metrics(self) -> dict[str, float]:
        """Samples of `/metrics` by name with labels."""
        text = httpx2.get(f"{self.url}/metrics", timeout=20, trust_env=False).text
        lines = (line for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
