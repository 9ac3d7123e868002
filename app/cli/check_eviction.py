"""``pumice check-eviction``: verifies the certificates of evictions, without a cluster."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli import output
from app.cli.certificates import check

_ACCEPTED, _REJECTED, _UNREADABLE = 0, 1, 2
_STDIN = "-"
CODES = "Exit codes: 0 accepted, 1 rejected, 2 not readable or no certificate."


def check_eviction(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Certificates in JSON, - for standard input."),
    ],
    *,
    form: Annotated[
        Literal["text", "json", "yaml"],
        typer.Option("--output", "-o", help="The form of the output."),
    ] = "text",
) -> None:
    """Verify that evictions were allowed, needed and enough, by their certificates alone.

    A line for each certificate says what is wrong and where, with the numbers. Checks for which
    there is only the planner's word are counted.
    """
    verdicts = [_verdict(file) for file in files]
    if form == "text":
        for verdict in verdicts:
            typer.echo("\n".join(_lines(verdict)), err=verdict["code"] == _UNREADABLE)
    else:
        typer.echo(output.document([_shown(verdict) for verdict in verdicts], form), nl=False)
    code = max(verdict["code"] for verdict in verdicts)
    if code:
        raise typer.Exit(code)


def _verdict(file: str) -> dict[str, Any]:
    """``code``, and what was found: ``error`` of a file that is no certificate."""
    unreadable = {"file": file, "code": _UNREADABLE}
    try:
        certificate = json.loads(_content(file))
    except OSError as error:
        return unreadable | {"error": error.strerror or str(error)}
    except (ValueError, RecursionError) as error:
        return unreadable | {"error": f"not JSON: {error}"}
    try:
        violations = [{"where": where, "text": text} for where, text in check(certificate)]
    except ValueError as error:
        return unreadable | {"error": f"no certificate: {error}"}
    kinds = Counter(unit["witness"]["kind"] for unit in certificate["units"] if unit["witness"])
    return {
        "file": file,
        "code": _REJECTED if violations else _ACCEPTED,
        "action": certificate["action"],
        "preemptor": certificate["preemptor"]["group"],
        "queue": certificate["preemptor"]["queue"],
        "victims": len(certificate["victims"]),
        "witnesses": dict(sorted(kinds.items())),
        "violations": violations,
    }


def _content(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()


def _lines(verdict: dict[str, Any]) -> list[str]:
    file = verdict["file"]
    if verdict["code"] == _UNREADABLE:
        return [f"{file}: {verdict['error']}"]
    found = verdict["violations"]
    if found:
        return [f"{file}: rejected: {each['where']} {each['text']}" for each in found]
    victims, kinds = verdict["victims"], verdict["witnesses"]
    evicts = f"{verdict['action']} evicts {victims} pod{'s' * (victims != 1)}"
    needed = ", ".join(f"{count} by {_CALLED[kind]}" for kind, count in kinds.items())
    whom = f"for {verdict['preemptor']}" if verdict["preemptor"] else f"of queue {verdict['queue']}"
    return [f"{file}: accepted: {evicts} {whom}; needed: {needed}"]


_CALLED = {
    "bound": "a bound",
    "exhaustive": "trying all",
    "planner": "the planner's word",
    "untried": "no trial, as members are too different",
}


def _shown(verdict: dict[str, Any]) -> dict[str, Any]:
    return {"accepted": verdict["code"] == _ACCEPTED, **verdict}
