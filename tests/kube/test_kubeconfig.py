"""Users of kubeconfigs, whose credentials change while we run."""

import asyncio
import datetime
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.kube.client import ApiClient
from app.kube.config import Connection, load
from app.kube.errors import ConfigError, KubeError, Unauthorized
from app.kube.source import Source
from tests.kube.plugins import API, Plugin
from tests.kube.server import ScriptedServer, answer, failure

Load = Callable[..., Connection]


@pytest.fixture
def load_as(server: ScriptedServer, tmp_path: Path) -> Load:
    """A connection as a user of that kubeconfig."""
    return lambda **user: load(server.kubeconfig(tmp_path, user=user))


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def tokens(server: ScriptedServer) -> list[str]:
    return [seen.headers["Authorization"] for seen in server.seen]


def ask_twice(connection: Connection) -> None:
    """The first is answered with 401."""

    async def use() -> None:
        async with ApiClient(connection) as client:
            with pytest.raises(Unauthorized):
                await client.get("/version")
            await client.get("/version")

    asyncio.run(use())


def read_twice(connection: Connection) -> None:
    """The first is answered with 401."""
    source = Source(connection)
    with pytest.raises(Unauthorized):
        source.read("/version", {}, silence_s=5.0)
    source.read("/version", {}, silence_s=5.0)
    source.close()


@pytest.mark.parametrize("twice", [ask_twice, read_twice])
def test_a_token_that_was_written_anew_is_used_after_a_401(
    server: ScriptedServer, load_as: Load, tmp_path: Path, *, twice: Callable[[Connection], None]
) -> None:
    server.on("GET", "/version", failure(401, "Unauthorized"), answer({}))
    (tmp_path / "token").write_text("one\n")
    connection = load_as(tokenFile="token")
    assert connection.headers() == bearer("one")
    (tmp_path / "token").write_text("two\n")
    twice(connection)
    assert tokens(server) == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize("twice", [ask_twice, read_twice])
def test_a_plugin_that_names_no_time_is_run_again_after_a_401(
    server: ScriptedServer, load_as: Load, plugin: Plugin, *, twice: Callable[[Connection], None]
) -> None:
    server.on("GET", "/version", failure(401, "Unauthorized"), answer({}))
    plugin.says(token="one")
    connection = load_as(**plugin.user)
    plugin.says(token="two")
    twice(connection)
    assert tokens(server) == ["Bearer one", "Bearer two"]
    assert plugin.runs == 2


def test_a_plugin_is_run_again_when_its_token_is_about_to_expire(
    load_as: Load, plugin: Plugin
) -> None:
    now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 - of what the plugin's clock says
    plugin.says(token="one", expirationTimestamp=f"{now + datetime.timedelta(seconds=59):%FT%TZ}")
    connection = load_as(**plugin.user)
    plugin.says(token="two", expirationTimestamp=f"{now + datetime.timedelta(hours=1):%FT%TZ}")
    assert [connection.headers() for _ in range(3)] == [bearer("two")] * 3
    assert plugin.runs == 2


def test_a_token_stands_before_a_plugin(load_as: Load, plugin: Plugin) -> None:
    assert load_as(token="static", **plugin.user).headers() == bearer("static")
    assert plugin.runs == 0


def test_the_file_of_a_token_stands_before_the_token(load_as: Load, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("filed")
    assert load_as(token="static", tokenFile=str(tmp_path / "token")).headers() == bearer("filed")


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, "it gave neither a token nor a certificate"),
        ({"token": ""}, "it gave neither a token nor a certificate"),
        ({"clientCertificateData": "x"}, "it gave neither a token nor a certificate"),
        ({"token": "t", "expirationTimestamp": "soon"}, "it printed no ExecCredential"),
    ],
)
def test_a_plugin_that_gives_nothing_of_use_is_named(
    load_as: Load, plugin: Plugin, *, status: dict[str, str], why: str
) -> None:
    plugin.says(**status)
    with pytest.raises(ConfigError, match=rf"the plugin {plugin.command} .*{why}"):
        load_as(**plugin.user)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/nowhere", "No such file"),
        ("/bin/false", "returned 1"),
        ("/bin/echo", "decode"),
    ],
)
def test_a_plugin_that_fails_ends_it_instead_of_nobody_logging_in(
    load_as: Load, caplog: pytest.LogCaptureFixture, *, command: str, why: str
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match=why):
        load_as(exec={"apiVersion": API, "command": command})
    assert caplog.records == []


def test_a_plugin_that_fails_at_a_terminal_has_said_there_why(
    load_as: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(ConfigError, match=r"it failed, or printed no ExecCredential$"):
            load_as(exec={"apiVersion": API, "command": "/bin/false"})


def test_a_plugin_that_fails_later_is_a_transient_error(
    server: ScriptedServer, load_as: Load, plugin: Plugin
) -> None:
    server.on("GET", "/version", failure(401, "Unauthorized"))
    plugin.says(token="one")
    connection = load_as(**plugin.user)
    plugin.command.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")

    async def use() -> list[str]:
        said = []
        async with ApiClient(connection) as client:
            for _ in range(2):
                with pytest.raises(KubeError) as caught:
                    await client.get("/version")
                assert isinstance(caught.value, Unauthorized)
                said.append(caught.value.message)
        return said

    assert "no network" in asyncio.run(use())[1]


@pytest.mark.parametrize(
    "disguise",
    [{"as": "bob"}, {"as-groups": ["admins"]}, {"as-uid": "1"}, {"as-user-extra": {"a": ["b"]}}],
)
def test_who_is_to_act_as_another_is_refused(load_as: Load, disguise: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"user me has 'as.*': impersonation is not supported"):
        load_as(token="t", **disguise)


def test_an_empty_file_of_a_token_is_named(load_as: Load, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigError, match=r"the token file .*token is empty"):
        load_as(tokenFile="token")


CLUSTER = 'clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]\n'
CONTEXTS = "contexts: [{name: here, context: {cluster: here, user: me}}]\n"
CURRENT = "current-context: here\n"
USER = "users: [{name: me, user: {token: t}}]\n"
WHOLE = CLUSTER + CONTEXTS + CURRENT + USER


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["", WHOLE], id="an empty file first"),
        pytest.param(["# nothing yet\n", WHOLE], id="only a comment"),
        pytest.param(["---\n", WHOLE], id="an empty document"),
        pytest.param([WHOLE, ""], id="an empty file last"),
        pytest.param([f"{WHOLE}---\n{WHOLE.replace('127.0.0.1', 'other')}"], id="documents"),
        pytest.param([f"{WHOLE}---\n{{ no YAML"], id="nobody reads the second document"),
        pytest.param([CLUSTER, CONTEXTS, CURRENT, USER], id="each a part"),
        pytest.param([WHOLE, "current-context: other\n"], id="the first current context"),
        pytest.param(["current-context: ''\n", WHOLE], id="but not an empty one"),
        pytest.param([WHOLE, USER.replace("token: t", "token: u")], id="the first user"),
    ],
)
def test_files_are_read_and_merged_as_kubectl_does(texts: list[str], tmp_path: Path) -> None:
    files = [tmp_path / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    connection = load(Path(os.pathsep.join(map(str, files))))
    assert connection.host == "http://127.0.0.1:1"
    assert connection.headers() == bearer("t")


@pytest.mark.parametrize("user", ["{name: me, user: null}", "{name: me}", "{name: me, user: {}}"])
def test_a_user_of_whom_nothing_is_said_is_anonymous(user: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(CLUSTER + CONTEXTS + CURRENT + f"users: [{user}]\n")
    assert load(file).headers() == {}


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
def test_nothing_in_any_file_is_told(text: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(ConfigError, match="there is no such file, or nothing in it"):
        load(file)
