"""How commands end: exit codes, one line, no traceback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from app.cli.endings import Code, CommandFailed, failing_to, of
from app.kube import errors
from app.kube.errors import ConfigError
from app.wire.documents import ObjectName
from tests.cli.stand import Done, Stand, answering, invoke

COMMAND = Path(sys.executable).with_name("pumice")
NOTHING = Done(0, "No resources found\n", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("x", status=404), Code.NOT_FOUND),
        (errors.Forbidden("x", status=403), Code.REFUSED),
        (errors.Invalid("x", status=422), Code.REFUSED),
        (errors.AlreadyExists("x", status=409), Code.REFUSED),
        (errors.Conflict("x", status=409), Code.REFUSED),
        (errors.Unauthorized("x", status=401), Code.REFUSED),
        (errors.Throttled("x", status=429), Code.UNREACHABLE),
        (errors.ServerError("x", status=503), Code.UNREACHABLE),
        (errors.Transport("x", sent=False), Code.UNREACHABLE),
        (ConfigError("x"), Code.USAGE),
        (CommandFailed(Code.TIMEOUT, "x"), Code.TIMEOUT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_error_has_its_code_and_is_one_line(
    error: Exception, code: Code, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as end, failing_to("do it"):
        raise error
    assert end.value.exit_code == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Failed to do it: ")
    assert said.err.endswith("x\n")


def test_an_answer_without_words_is_named_by_its_status() -> None:
    assert str(of(errors.ServerError("", status=502))) == "the API server answered 502"
    assert str(of(errors.Forbidden("", status=403, reason="Forbidden"))) == "Forbidden"
    assert str(of(errors.Unauthorized("Unauthorized", status=401))) == (
        "the API server does not accept the credentials: Unauthorized"
    )


def test_lines_become_one() -> None:
    assert str(CommandFailed(Code.USAGE, "a\n  b\tc")) == "a b c"


def test_a_kind_that_is_not_served_is_said_with_what_helps(stand: Stand) -> None:
    stand.server.delete(
        "apiextensions.k8s.io/customresourcedefinitions", ObjectName("", "jobs.batch.volcano.sh")
    )
    assert stand.refusal("job", "list") == (
        3,
        "Failed to list job: the API server does not serve jobs.batch.volcano.sh; "
        "`pumice crds | kubectl apply --server-side -f -` would change that\n",
    )


def test_an_api_server_that_is_not_there_is_code_5(stand: Stand) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = f"http://127.0.0.1:{port}"
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    assert stand.refusal("job", "list", "--master", server) == (
        5,
        "Failed to list job: the API server is not reached: "
        f"GET {server}{path}: Connection refused\n",
    )


def test_a_proxy_of_the_environment_is_named_when_it_fails(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@127.0.0.1:1")
    server = "https://api.invalid:6443"
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    for more in ([], ["--kubeconfig", ""]):
        assert stand.refusal("job", "list", "--master", server, *more) == (
            5,
            "Failed to list job: the API server is not reached: "
            f"GET {server}{path} through the proxy http://127.0.0.1:1: "
            "the proxy cannot be reached: Connection refused\n",
        )


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    variable: str, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    assert stand.printed("job", "list") == "No resources found\n"
    here = stand.url.replace("127.0.0.1", "localhost")
    assert stand.printed("job", "list", "--master", here) == "No resources found\n"
    assert stand.printed("job", "list", "-s", here, "-k", "") == "No resources found\n"


@pytest.mark.parametrize(
    ("text", "why"), [(None, "there is no kubeconfig"), ("[", "is not a kubeconfig"), ("{}", "")]
)
def test_a_kubeconfig_that_will_not_do_is_code_2(
    text: str | None, why: str, stand: Stand, tmp_path: Path
) -> None:
    file = tmp_path / "broken"
    if text is not None:
        file.write_text(text)
    code, said = stand.refusal("job", "list", "-k", str(file))
    assert code == 2
    assert why in said
    assert said.count("\n") == 1


@pytest.fixture
def nowhere(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig; the environment names none either."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PUMICE_KUBECONFIG", raising=False)
    return tmp_path / "home" / ".kube" / "config"


def run(*arguments: str, **env: str) -> Done:
    """Run a command that is told by nothing else where the cluster is."""
    return invoke(Path(), *arguments, env={"PUMICE_KUBECONFIG": "", **env})


def test_without_a_kubeconfig_it_is_said_how_to_name_one(nowhere: Path) -> None:
    for flags in ([], ["-k", ""]):
        assert run("job", "list", *flags, KUBECONFIG="") == Done(
            2,
            "",
            f"Failed to list job: there is no kubeconfig {nowhere}: "
            "name one by --kubeconfig or the variable KUBECONFIG\n",
        )


@pytest.mark.parametrize("flags", [[], ["-k", ""]], ids=["no flag", "an empty flag"])
def test_the_usual_kubeconfig_is_kubectl_s(flags: list[str], nowhere: Path, stand: Stand) -> None:
    nowhere.parent.mkdir(parents=True)
    stand.config.rename(nowhere)
    assert run("job", "list", *flags, KUBECONFIG="") == NOTHING


def test_an_address_alone_will_do(nowhere: Path, stand: Stand) -> None:
    assert run("job", "list", "-s", stand.url, KUBECONFIG="") == NOTHING


def test_several_kubeconfigs_are_one(nowhere: Path, stand: Stand, tmp_path: Path) -> None:
    second = tmp_path / "second"
    config = yaml.safe_load(stand.config.read_text())
    config["contexts"][0]["name"] = "other"
    config["clusters"][0] = {"name": "dead", "cluster": {"server": "http://127.0.0.1:1"}}
    config["contexts"][0]["context"]["cluster"] = "dead"
    del config["current-context"]
    second.write_text(yaml.safe_dump(config))
    for files in (
        f"{stand.config}:{second}",
        f"{second}:{stand.config}",
        f"/none:{stand.config}",
        f":{stand.config}",
    ):
        assert run("job", "list", KUBECONFIG=files) == NOTHING
        assert run("job", "list", "-k", files, KUBECONFIG="") == NOTHING
    assert run("job", "list", "--context=other", KUBECONFIG=f"{stand.config}:{second}").code == 5


def test_certificates_that_are_none_are_code_2(stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / "broken"
    config = yaml.safe_load(stand.config.read_text())
    cluster = config["clusters"][0]["cluster"]
    cluster |= {"server": "https://127.0.0.1:1", "certificate-authority-data": "bm9uZQ=="}
    file.write_text(yaml.safe_dump(config))
    code, said = stand.refusal("job", "list", "-k", str(file))
    assert code == 2
    assert f"the certificates of {file} cannot be read: " in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("master", ["http://[", "ftp://x", "http://", "x:99999", ":1"])
def test_an_address_that_is_none_is_code_2(master: str, stand: Stand) -> None:
    assert stand.refusal("job", "list", "-s", master) == (
        2,
        f"Failed to list job: --master: {master!r} is no address of an API server\n",
    )


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"metadata": 5}', b"", b"\xff"])
def test_a_server_of_something_else_is_code_5(answer: bytes, stand: Stand) -> None:
    with answering(answer) as (url, _):
        code, said = stand.refusal("job", "list", "-s", url)
        assert stand.refusal("job", "view", "-N", "a", "-s", url)[0] in {3, 5}
    assert code == 5
    assert said == f"Failed to list job: what answers at {url} is no API server\n"


def test_a_context_that_is_not_there_is_code_2(stand: Stand) -> None:
    assert stand.refusal("job", "list", "--context", "none")[0] == 2
    assert stand.printed("job", "list", "--context", "pumice-sandbox") == "No resources found\n"


def test_master_goes_before_the_kubeconfig_and_needs_none(stand: Stand, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text(stand.config.read_text().replace(stand.url, "http://127.0.0.1:1"))
    for flags in (["-k", str(wrong), "-s", stand.url], ["--master", stand.url.split("//")[1]]):
        assert stand.printed("job", "list", *flags) == "No resources found\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["job", "view", "-N", "{}"],
        ["job", "delete", "-N", "{}"],
        ["job", "view", "-N", "a", "-n", "{}"],
        ["job", "run", "-N", "a", "-n", "{}"],
        ["job", "list", "-n", "{}"],
        ["pod", "list", "-n", "{}"],
        ["queue", "get", "-n", "{}"],
        ["queue", "delete", "-n", "{}"],
        ["queue", "operate", "-n", "{}", "-a", "update", "-w", "2"],
        ["jobflow", "get", "-N", "{}"],
        ["jobtemplate", "delete", "-N", "{}"],
        ["explain", "{}"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["..", ".", "a/..", "a%2Fb", "\udcff"])
def test_what_nothing_can_be_called_is_code_2(
    arguments: list[str], name: str, stand: Stand
) -> None:
    code, said = stand.refusal(*(word.format(name) for word in arguments))
    assert code == 2
    assert said.count("\n") == 1
    assert "does not serve" not in said


def test_a_namespace_is_needed_for_what_is_in_one(stand: Stand) -> None:
    for verb in (["run", "-N", "a"], ["view", "-N", "a"], ["delete", "-N", "a"]):
        assert stand.refusal("job", *verb, "-n", "") == (
            2,
            f"Failed to {verb[0]} job: the namespace cannot be left blank\n",
        )
    assert stand.run("job", "list", "-n", "").code == 0


INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Shells let what they start in the background ignore interrupts, and children inherit that."""


def test_an_interrupt_ends_a_wait_with_130_and_no_traceback(stand: Stand) -> None:
    words = [str(COMMAND), "job", "run", "-N", "a", "--wait", "-k", str(stand.config)]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=30)
    assert first == "default/a: Pending\n"
    assert (process.returncode, rest) == (130, "")
    assert out == "run job a successfully\n"


def test_a_reader_that_goes_away_is_no_traceback(stand: Stand) -> None:
    script = f"{COMMAND} job list -o json -k {stand.config} | true"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [["pumice", "crds"], ["vcctl", "version"], ["vcctl", "job", "list", "-o", "json"], ["vjobs"]],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_is_one_line(words: list[str], stand: Stand) -> None:
    program, *arguments = words
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [COMMAND.with_name(program), *arguments],
            env={**os.environ, "KUBECONFIG": str(stand.config)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    why = f"{program}: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, why)


_ASKED_IN_A_CALLBACK = """
import signal, weakref
from app.cli.processes import end_at_once

class Lock: pass

end_at_once()
lock = Lock()
watched = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGTERM))
del lock
raise SystemExit(3)
"""


def test_a_process_that_loads_ends_with_0_wherever_the_signal_comes() -> None:
    """Python drops exceptions that are raised in the callback of a weak reference."""
    argv = [sys.executable, "-c", _ASKED_IN_A_CALLBACK]
    assert subprocess.run(argv, check=False, timeout=60).returncode == 0


_ASKED_WHILE_LOADING = """
import signal, sys
from types import ModuleType
from app.cli.root import app

class Loading(ModuleType):
    def __getattr__(self, name):
        signal.raise_signal(signal.SIGTERM)

sys.modules[sys.argv.pop(1)] = Loading("loading")
app()
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("extender", ["extender", "--port", "0"]),
        ("controllers", ["controllers"]),
        ("webhooks", ["webhooks", "--port", "0"]),
        ("together", ["all", "--port", "0", "--webhooks", "false"]),
    ],
)
def test_every_process_ends_with_0_while_it_loads(module: str, arguments: list[str]) -> None:
    argv = [sys.executable, "-c", _ASKED_WHILE_LOADING, f"app.main.{module}", *arguments]
    assert subprocess.run(argv, check=False, timeout=60).returncode == 0


_ASKED_AT_THE_BEGINNING = """
import signal, sys

class Loading:
    def find_spec(self, name, path=None, target=None):
        if name == "app.cli.root":
            signal.raise_signal(getattr(signal, sys.argv[1]))

sys.meta_path.insert(0, Loading())
from app.cli.program import main
main()
"""


_HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""The tests may have been put into the background, where SIGINT is ignored."""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_is_heard_from_the_beginning(name: str, code: int) -> None:
    """Also by the first process of a container, which would not get it otherwise."""
    argv = [sys.executable, "-c", f"{_HEARING}{_ASKED_AT_THE_BEGINNING}", name]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_signal_that_is_to_be_ignored_is() -> None:
    """As of a program that a shell has put into the background."""
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    argv = [sys.executable, "-c", f"{ignoring}{_ASKED_AT_THE_BEGINNING}", "SIGINT"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "No such command 'SIGINT'" in done.stderr) == (2, True)


_ASKED_BEFORE_THE_COMMAND = """
import signal
from app.cli.endings import run

run(lambda: signal.raise_signal(signal.SIGINT))
"""


def test_an_interrupt_before_the_command_is_known_is_no_error() -> None:
    argv = [sys.executable, "-c", f"{_HEARING}{_ASKED_BEFORE_THE_COMMAND}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


_ASKED_ONCE_IT_LISTENS = """
import signal
from app.cli.root import app
from app.main.serving import server

def opened(bind, opened=server.opened):
    listener = opened(bind)
    signal.raise_signal(signal.SIGTERM)
    return listener

server.opened = opened
app()
"""


@pytest.mark.parametrize("role", [["extender"], ["webhooks"], ["all", "--webhooks", "false"]])
def test_every_process_ends_with_0_from_the_moment_it_listens(role: list[str]) -> None:
    argv = [sys.executable, "-c", _ASKED_ONCE_IT_LISTENS, *role, "--port", "0"]
    assert subprocess.run(argv, check=False, timeout=60).returncode == 0
