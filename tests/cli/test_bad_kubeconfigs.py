"""A kubeconfig that is of no use ends every command in the same way: one line, exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.stand import invoke

COMMANDS = {
    "extender": ["extender", "--port=0"],
    "controllers": ["controllers", "--healthz-address="],
    "webhooks": ["webhooks", "--bind-address=127.0.0.1", "--port=0"],
    "verb": ["job", "list"],
}
KUBECONFIG = """
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://x", certificate-authority-data: bm9uZQ==}}]
users: []
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kubeconfig_of_no_use_is_one_line_and_exit_code_2(command: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    code, lines = ended(COMMANDS[command], file)
    assert code == 2
    assert len(lines) == 1, lines
    assert f"the certificates of {file} cannot be read: " in lines[0]


def kubeconfig(**parts: object) -> str:
    """One that would do, but for these parts."""
    server = {"server": "https://127.0.0.1:1"}
    whole = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {}}],
    }
    return yaml.safe_dump({**whole, **parts})


def cluster(**more: str) -> list[dict[str, object]]:
    return [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **more}}]


def user(**more: object) -> list[dict[str, object]]:
    return [{"name": "u", "user": more}]


SHAPE = "is not a kubeconfig: lists of clusters, contexts and users are expected"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "a: [1\nb: 2\n",
            "{} is not a kubeconfig: not YAML: line 2, column 2: expected ',' or ']', but got ':'",
        ),
        ("[]", f"{{}} {SHAPE}"),
        ("hello", f"{{}} {SHAPE}"),
        (kubeconfig(contexts=5), f"{{}} {SHAPE}"),
        ("", "no connection from {}: there is no such file, or nothing in it"),
        (
            "{}",
            "no connection from {}: it says no current-context, and none is named by --context",
        ),
        (kubeconfig(contexts=[]), "no connection from {}: there is no context x in it"),
        (kubeconfig(clusters=[]), "no connection from {}: there is no cluster c in it"),
        (kubeconfig(contexts=[{"name": "x"}]), "no connection from {}: context is missing in it"),
        (
            kubeconfig(clusters=cluster(**{"certificate-authority-data": "%%%"})),
            "the certificates of {} cannot be read: there is no certificate where one is expected",
        ),
        (
            kubeconfig(
                users=user(**{"client-certificate-data": "Zm9v", "client-key-data": "YmFy"})
            ),
            "the certificates of {} cannot be read: a certificate or a key is not PEM",
        ),
        (
            kubeconfig(users=user(tokenFile="/nowhere/token")),
            "no connection from {}: /nowhere/token: No such file or directory",
        ),
        (
            kubeconfig(
                users=user(
                    exec={"command": "nosuch", "apiVersion": "client.authentication.k8s.io/v1"}
                )
            ),
            "no connection from {}: the plugin nosuch gives no credentials: "
            "nosuch: No such file or directory",
        ),
    ],
)
def test_what_is_wrong_with_it_is_said_without_a_library_s_words(
    text: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    done = invoke(file, "job", "list")
    assert (done.code, done.err) == (2, f"Failed to list job: {why.format(file)}\n")


def test_one_in_another_encoding_is_called_that(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(b"\xff\xfe\x00")
    done = invoke(file, "job", "list")
    why = f"Failed to list job: {file} is not a kubeconfig: it is not UTF-8 text\n"
    assert (done.code, done.err) == (2, why)


def ended(arguments: list[str], file: Path) -> tuple[int, list[str]]:
    """Exit code and the lines that were said."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PUMICE_")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from app.cli.root import main; main()",
            *arguments,
            f"--kubeconfig={file}",
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()
