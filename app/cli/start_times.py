"""When waiting gangs start, as the extender foretells it (``GET /eta``): asked again and again.

An older extender does not foretell, and a user may not be allowed to ask: then nothing is shown.
"""

import threading
from collections.abc import Mapping
from typing import Any, Final

from app.cli.asking import ask_extender
from app.cli.endings import CommandFailed
from app.wire.ages import human_duration

EVERY_S: Final = 10.0
"""The planner works for each answer."""
_DEADLINE_S: Final = 5.0
_WORDS: Final = {"now": "now", "never": "never"}

StartTimes = Mapping[str, str]
"""``namespace/name`` of a PodGroup -> when it starts, as it is shown."""


class AskedStartTimes:
    """The latest answer of the extender at ``url``, about ``namespace`` or (empty) all."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._path = f"/eta/{namespace}" if namespace else "/eta"
        self.latest: StartTimes | None = None
        """None: the extender has not told."""

    def ask(self) -> None:
        """Ask once, for at most some seconds."""
        try:
            answer = ask_extender(self._url, self._path, deadline_s=_DEADLINE_S)
        except CommandFailed:
            self.latest = None
        else:
            self.latest = start_times(answer)

    def keep_asking(self, stopping: threading.Event) -> None:
        """Ask in a thread of its own until ``stopping`` is set; a question is not waited for."""
        threading.Thread(target=self._ask_until, args=[stopping], daemon=True).start()

    def _ask_until(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            self.ask()
            stopping.wait(EVERY_S)


def start_times(answer: Mapping[str, Any]) -> StartTimes:
    """When each gang of the answer starts: ``4m to 9m``, of which the first has even odds."""
    return {str(eta.get("group")): _text(eta) for eta in answer.get("etas") or ()}


def _text(eta: Mapping[str, Any]) -> str:
    outcome, now = eta.get("outcome"), eta.get("now") or 0.0
    if outcome in _WORDS:
        return _WORDS[outcome]
    if outcome == "beyond" and eta.get("beyond") is not None:
        return f"after {_left(eta['beyond'], now)}"
    if outcome != "later" or eta.get("p50") is None:
        return "-"
    likely = _left(eta["p50"], now)
    late = "later" if eta.get("p90") is None else _left(eta["p90"], now)
    return likely if late == likely else f"{likely} to {late}"


def _left(at: float, now: float) -> str:
    return human_duration(max(at - now, 0.0))
