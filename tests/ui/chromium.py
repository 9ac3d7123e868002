"""A headless Chromium, driven by the DevTools protocol over its websocket."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
"""Debian's package, where it is installed."""
MISSING = "Chromium is not installed (apt-get install chromium): the page is not looked at"
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
)
_START_S = 30.0
_ANSWER_S = 60.0
_POLL_S = 0.05
_KEYS = {"Tab": 9, "Enter": 13, " ": 32, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
_KEYS |= {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
_SHIFT = 8
_TEXT = "document.body.innerText.replaceAll('\\u00a0', ' ')"


class PageError(AssertionError):
    """The page did not become what the test waits for; the text says what it shows instead."""


@dataclass(slots=True)
class Wire:
    """The websocket to a browser, with one command at a time."""

    connection: ClientConnection
    number: int = 0

    def send(
        self,
        method: str,
        parameters: Mapping[str, Any],
        *,
        session: str = "",
        note: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """The answer to a command; PageError when it is refused. ``note`` is told of events."""
        self.number += 1
        said = {"id": self.number, "method": method, "params": parameters}
        self.connection.send(json.dumps(said | ({"sessionId": session} if session else {})))
        while True:
            heard = json.loads(self.connection.recv(timeout=_ANSWER_S))
            if heard.get("id") == self.number:
                break
            if note is not None and heard.get("sessionId") == session:
                note(heard)
        if "error" in heard:
            raise PageError(f"{method}: {heard['error']['message']}")
        found: dict[str, Any] = heard["result"]
        return found


@dataclass(slots=True)
class Tab:
    """One tab: what a person does with it, and what it shows."""

    wire: Wire
    session: str
    complaints: list[str] = field(default_factory=list)
    """Errors of the console and exceptions that no code has caught."""

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command of the protocol; PageError when it is refused."""
        return self.wire.send(method, parameters, session=self.session, note=self._note)

    def _note(self, heard: dict[str, Any]) -> None:
        said = heard.get("params", {})
        if heard.get("method") == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", details["text"])
            self.complaints.append(thrown)
        if heard.get("method") == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")

    def open(self, url: str) -> None:
        """Go to an address, as from a link in a chat: the whole page is loaded."""
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives, once a promise of it is kept."""
        found = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def wait(self, expression: str, *, within_s: float = 15.0) -> Any:
        """The first value of an expression that is true."""
        end = time.monotonic() + within_s
        while True:
            if found := self.value(expression):
                return found
            if time.monotonic() > end:
                text = self.value("document.body.innerText")
                raise PageError(f"not {expression}\n{text}\n{self.complaints}")
            time.sleep(_POLL_S)

    def shows(self, *texts: str, within_s: float = 15.0) -> None:
        """Wait until a reader of the page finds all of these texts."""
        for text in texts:
            self.wait(f"({_TEXT}).includes({json.dumps(text)})", within_s=within_s)

    def text(self, selector: str = "body") -> str:
        """What a reader finds in an element."""
        found: str = self.value(f"document.querySelector({json.dumps(selector)}).innerText")
        return found.replace("\xa0", " ")

    def click(self, text: str) -> None:
        """Click on the first button, link or option of that text."""
        has = f"it.textContent.trim() === {json.dumps(text)} && !it.disabled"
        named = f"[...document.querySelectorAll('button, a, summary')].find(it => {has})"
        self.wait(f"Boolean({named})")
        self.value(f"{named}.click()")

    def choose(self, label: str, value: str) -> None:
        """Choose or enter a value in the field of a label."""
        begins = f"it.textContent.trim().startsWith({json.dumps(label)})"
        field = f"[...document.querySelectorAll('label')].find(it => {begins})?.control"
        self.wait(f"Boolean({field})")
        said = json.dumps(value)
        self.value(
            f"(() => {{ const it = {field}; it.value = {said};"
            " for (const kind of ['input', 'change'])"
            " it.dispatchEvent(new Event(kind, {bubbles: true})); })()"
        )

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and let go a key of the keyboard."""
        code = _KEYS.get(key, ord(key.upper()[0]))
        what = {"key": key, "windowsVirtualKeyCode": code, "modifiers": _SHIFT if shift else 0}
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        more = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **what, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, text: str) -> None:
        """Put text where the keyboard's focus is."""
        self.send("Input.insertText", text=text)

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """The size of the window, and whether the reader prefers dark."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.send("Emulation.setEmulatedMedia", features=[scheme, still])

    def picture(self, to: Path) -> None:
        """A picture of the whole page."""
        made = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(base64.b64decode(made["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Wire]:
    """A running Chromium with a profile of its own in ``folder``."""
    chromium = subprocess.Popen(
        [PROGRAM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
        start_new_session=True,
    )
    try:
        with connect(_address(folder / "DevToolsActivePort"), max_size=None) as connection:
            wire = Wire(connection)
            yield wire
            wire.send("Browser.close", {})
    finally:
        try:
            chromium.wait(timeout=5)
        except subprocess.TimeoutExpired:
            chromium.kill()
            chromium.wait()


def _address(told_in: Path) -> str:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if told_in.exists() and (lines := told_in.read_text().splitlines())[1:]:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(_POLL_S)
    raise PageError(f"Chromium did not start within {_START_S:.0f} s")


@contextmanager
def tab(wire: Wire) -> Iterator[Tab]:
    """A new tab that remembers nothing of others."""
    context = wire.send("Target.createBrowserContext", {})["browserContextId"]
    new = {"url": "about:blank", "browserContextId": context}
    target = wire.send("Target.createTarget", new)["targetId"]
    attached = wire.send("Target.attachToTarget", {"targetId": target, "flatten": True})
    made = Tab(wire, attached["sessionId"])
    for domain in ("Page", "Runtime", "Log", "Network"):
        made.send(f"{domain}.enable")
    made.look()
    yield made
    wire.send("Target.disposeBrowserContext", {"browserContextId": context})
