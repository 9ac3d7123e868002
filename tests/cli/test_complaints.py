"""Bad values of options are complained of in our words, wherever typer or a setting reads them."""

from __future__ import annotations

import pytest
import typer

from app.cli.root import app
from app.cli.standalone import PROGRAMS
from tests.cli.stand import Stand

VSUB, VJOBS = PROGRAMS["vsub"], PROGRAMS["vjobs"]
FORMS = "'table', 'wide', 'json', 'yaml', 'name'"


@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        (app, ["job", "run", "-r", "x"], "'--replicas' / '-r': 'x' is no integer"),
        (app, ["job", "run", "-m", "1.5"], "'--min' / '-m': '1.5' is no integer"),
        (VSUB, ["-r", "x"], "'--replicas' / '-r': 'x' is no integer"),
        (
            app,
            ["job", "list", "-o", "x"],
            f"'--output' / '-o': 'x' is not one of {FORMS}.",
        ),
        (VJOBS, ["-o", "x"], f"'--output' / '-o': 'x' is not one of {FORMS}."),
        (app, ["queue", "create", "-w", "x"], "'--weight' / '-w': 'x' is no integer"),
        (
            app,
            ["queue", "create", "-S", "x"],
            "'--state' / '-S': 'x' is not one of 'Open', 'Closed'.",
        ),
        (app, ["extender", "--port", "x"], "'--port': 'x' is no integer"),
        (app, ["extender", "--kube-api-qps", "x"], "'--kube-api-qps': 'x' is no number"),
        (
            app,
            ["extender", "--leader-elect=perhaps"],
            "'--leader-elect': 'perhaps' is not one of 'true', 'false'.",
        ),
        (
            app,
            ["sandbox", "--nodes", "x"],
            "'--nodes' (env var: 'PUMICE_NODES'): 'x' is no integer",
        ),
    ],
)
def test_a_value_that_typer_reads(
    program: typer.Typer, arguments: list[str], said: str, stand: Stand
) -> None:
    code, why = stand.refusal(*arguments, program=program)
    assert code == 2
    assert why.splitlines()[-1] == f"Error: Invalid value for {said}"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("PUMICE_PORT", "x", "--port: 'x' is no integer"),
        ("PUMICE_KUBE_API_QPS", "x", "--kube-api-qps: 'x' is no number"),
        ("PUMICE_KUBE_API_QPS", "-1", "--kube-api-qps: -1 is not greater than 0"),
        ("PUMICE_LEADER_ELECT", "perhaps", "--leader-elect: 'perhaps' is neither true nor false"),
        ("PUMICE_LOG_FORMAT", "x", "--log-format: 'x' is not 'text' or 'json'"),
    ],
)
def test_a_value_that_a_setting_reads(variable: str, value: str, said: str, stand: Stand) -> None:
    done = stand.run("extender", env={variable: value})
    assert (done.code, done.err) == (2, f"pumice: {said}\n")
