"""When waiting gangs start, as the extender foretells it (``GET /eta``): asked again and again.

An older extender does not foretell, and a user may not be allowed to ask: then nothing is shown.
"""

import threading
from collections.abc import Mapping
from typing import Any, Final

from app.cli.asking import ask_extender
from app.cli.endings import CommandFailed
from app.cli.eta import in_short

EVERY_S: Final = 10.0
"""The planner works for each answer."""
_DEADLINE_S: Final = 5.0

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
    """When each gang of the answer starts, in short."""
    return {str(each["group"]): in_short(each) for each in answer.get("etas") or ()}
