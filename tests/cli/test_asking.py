"""Questions to the extender: the token goes to no other, and refusals keep their words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from app.cli.asking import TOKEN, TOKEN_FILE, ask_extender, content_of, lines_of
from app.cli.endings import Code, CommandFailed


class Told(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    seen: list[str]

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["content-length"])))

    def _answer(self, body: bytes) -> None:
        self.seen.append(self.path)
        if self.path.startswith("/refuse"):
            self._send(403, b"tom may not\n")
        elif self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("location", "/told")
            self.end_headers()
        elif self.path.startswith("/lines"):
            self._send(200, b"one\ntwo\nthree")
        elif self.path.startswith("/page"):
            self._send(200, b"<html>a login page</html>")
        else:
            said = {
                "path": self.path,
                "token": self.headers["authorization"],
                "body": body.decode(),
            }
            self._send(200, json.dumps(said).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def url(seen: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in (TOKEN, TOKEN_FILE):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Told,), {"seen": seen}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def failed(url: str, path: str = "/told") -> tuple[Code, str]:
    with pytest.raises(CommandFailed) as caught:
        ask_extender(url, path)
    return caught.value.code, str(caught.value)


def test_a_question_is_asked_with_its_parameters_or_its_body(url: str) -> None:
    assert ask_extender(url, "/told", params={"a": "b c&d"})["path"] == "/told?a=b+c%26d"
    assert json.loads(ask_extender(url, "/told", question={"a": [1]})["body"]) == {"a": [1]}


def test_the_token_of_the_environment_or_of_a_file_is_shown(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ask_extender(url, "/told")["token"] is None
    path = tmp_path / "token"
    path.write_text("in-a-file\n")
    monkeypatch.setenv(TOKEN_FILE, str(path))
    assert ask_extender(url, "/told")["token"] == "Bearer in-a-file"
    path.write_text("renewed\n")
    assert ask_extender(url, "/told")["token"] == "Bearer renewed"
    monkeypatch.setenv(TOKEN, "of-the-environment")
    assert ask_extender(url, "/told")["token"] == "Bearer of-the-environment"


def test_a_token_that_cannot_be_read_or_sent_is_told_before_anything_is_asked(
    url: str, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "two\nlines")
    assert failed(url) == (Code.USAGE, f"{TOKEN}: this is no token")
    monkeypatch.delenv(TOKEN)
    monkeypatch.setenv(TOKEN_FILE, "/not/there")
    code, why = failed(url)
    assert (code, why.startswith(f"{TOKEN_FILE}: /not/there: ")) == (Code.USAGE, True)
    assert not seen


def test_a_refusal_keeps_its_words(url: str) -> None:
    assert failed(url, "/refuse") == (Code.REFUSED, "tom may not")


def test_the_token_goes_to_no_other_address(url: str, seen: list[str]) -> None:
    assert failed(url, "/away")[0] is Code.UNREACHABLE
    assert seen == ["/away"]


def test_what_is_no_answer_is_told(url: str) -> None:
    code, why = failed(url, "/page")
    assert (code, "does not tell" in why) == (Code.UNREACHABLE, True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc", "http://[", "nonsense"])
def test_an_extender_that_cannot_be_asked_is_named(url: str) -> None:
    code, why = failed(url)
    assert code is Code.UNREACHABLE
    assert why.startswith(f"the extender at {url} does not tell: ")


def test_long_answers_come_in_lines_or_whole(url: str) -> None:
    assert list(lines_of(url, "/lines", params={})) == ["one", "two", "three"]
    assert content_of(url, "/lines") == b"one\ntwo\nthree"
