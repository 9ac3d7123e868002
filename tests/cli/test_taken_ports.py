"""An address that cannot be listened on is named, whichever option it comes from."""

import socket
from pathlib import Path

import pytest
import yaml

from app.sandbox.assembly import kubeconfig
from tests.cli.test_bad_kubeconfigs import ended

NO_SERVER = "http://127.0.0.1:9"
"""The port of `discard`, on which nobody listens."""


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("controllers", "--healthz-address"),
        ("controllers", "--listen-address"),
        ("extender", "--listen-address"),
    ],
)
def test_a_taken_port_is_named_in_one_line(command: str, flag: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig(NO_SERVER)))
    others = {"controllers": ["--healthz-address="], "extender": ["--port=0"]}[command]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, lines = ended([command, *others, f"{flag}={address}"], file)
    assert code == 2
    assert lines == [f"pumice: cannot listen on {address}: Address already in use"]
