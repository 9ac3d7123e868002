"""What a container would do, read from its command: how long it runs and how it ends.

Understood: ``sleep N``, ``exit N``, ``true``, ``false``, ``echo``, and ``sh -c`` scripts made of
them with ``;``, ``&&``, ``||``, new lines, ``$?`` and ``set -e`` (also ``sh -e``). Anything else
runs until it is stopped, but in an init container it ends at once. The annotations
``pumice.sh/sandbox-run-seconds`` and ``pumice.sh/sandbox-exit-code`` overrule the command; one that
cannot be read counts as absent.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, replace

from app.wire.documents import Document, annotations_of, items

RUN_SECONDS = "pumice.sh/sandbox-run-seconds"
EXIT_CODE = "pumice.sh/sandbox-exit-code"

_HIGHEST_CODE = 255
_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SEPARATOR = re.compile(r"(&&|\|\||;|\n)")
_LISTS = frozenset({"&&", "||"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_INSTANT = frozenset(
    {":", "true", "cd", "export", "set", "umask", "mkdir", "touch", "date", "test"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A container's behaviour; ``seconds`` is None where nothing is known of its program.

    ``stop_code`` is how it ends on SIGTERM: an image's own program is taken for a server that
    leaves in good order.
    """

    seconds: float | None = None
    exit_code: int = 0
    ignores_term: bool = False
    stop_code: int = 143
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """One simple command: None seconds is unknown, ``leaves`` ends the script."""

    seconds: float | None
    code: int
    leaves: bool = False
    output: str = ""


def program_of(pod: Document, container: Document) -> Program:
    """The behaviour of one container of a pod."""
    words = [str(word) for word in [*items(container, "command"), *items(container, "args")]]
    program = parse_command(words)
    annotations = annotations_of(pod)
    seconds = _run_seconds(annotations.get(RUN_SECONDS))
    code = _exit_code(annotations.get(EXIT_CODE))
    if seconds is not None:
        program = replace(program, seconds=seconds)
    if code is not None:
        program = replace(program, seconds=program.seconds or 0.0, exit_code=code)
    return program


def unreadable_annotations(pod: Document) -> list[str]:
    """What is wrong with the annotations about the pod's programs, a sentence each."""
    annotations = annotations_of(pod)
    seconds, code = annotations.get(RUN_SECONDS), annotations.get(EXIT_CODE)
    found: list[str] = []
    if seconds is not None and _run_seconds(seconds) is None:
        found.append(f'{RUN_SECONDS} is ignored: "{seconds}" is not a number of seconds')
    if code is not None and _exit_code(code) is None:
        found.append(f'{EXIT_CODE} is ignored: "{code}" is not an exit code from 0 to 255')
    return found


def _run_seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _exit_code(text: str | None) -> int | None:
    try:
        code = int(text or "")
    except ValueError:
        return None
    return code if 0 <= code <= _HIGHEST_CODE else None


def parse_command(words: list[str]) -> Program:
    """What the words do when they are run; a program without end where they are not understood."""
    if not words:
        return Program(stop_code=0)
    name = words[0].rpartition("/")[2]
    if name in _SHELLS:
        options, script = _script(words[1:])
        program = Program()
        if script is not None:
            program = _run_script(script, errexit=_errexit(options))
        return replace(program, ignores_term=True)
    step = _step(words)
    output = (step.output,) if step.output else ()
    return Program(seconds=step.seconds, exit_code=step.code, output=output)


def _script(words: list[str]) -> tuple[list[str], str | None]:
    """The options of a shell, and the argument of ``-c``, also in ``-ec`` and ``-x -c``."""
    for index, word in enumerate(words[:-1]):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return words[: index + 1], words[index + 1]
    return words, None


def _errexit(options: list[str], *, before: bool = False) -> bool:
    """Whether a shell ends at a command that fails, when it (or ``set``) is given ``options``."""
    holds = before
    for index, word in enumerate(options):
        if word[:1] not in {"-", "+"} or word.startswith("--"):
            continue
        named = word[1:] == "o" and options[index + 1 : index + 2] == ["errexit"]
        if named or "e" in word[1:]:
            holds = word[0] == "-"
    return holds


def _run_script(script: str, *, errexit: bool) -> Program:
    seconds, code = 0.0, 0
    output: list[str] = []
    commands = _commands(script)
    joiners = [*(joiner for joiner, _ in commands[1:]), ";"]
    for (joiner, text), following in zip(commands, joiners, strict=True):
        if (joiner == "&&" and code) or (joiner == "||" and not code):
            continue
        words = _words(text, last=code)
        step = _step(words, last=code)
        if step.output:
            output.append(step.output)
        if step.seconds is None or step.seconds == math.inf:
            return Program(seconds=step.seconds, output=tuple(output))
        seconds, code = seconds + step.seconds, step.code
        if words[:1] == ["set"]:
            errexit = _errexit(words[1:], before=errexit)
        # A command that decides over the rest of a list may fail: its status is looked at.
        if step.leaves or (errexit and code and following not in _LISTS):
            break
    return Program(seconds=seconds, exit_code=code, output=tuple(output))


def _commands(script: str) -> list[tuple[str, str]]:
    """The commands of ``script``, each with what joins it to the one before."""
    found: list[tuple[str, str]] = []
    joiner = ";"
    for piece in _SEPARATOR.split(script):
        if not _SEPARATOR.fullmatch(piece):
            if piece.strip():
                found.append((joiner, piece))
                joiner = ";"
        elif joiner not in _LISTS:  # after one, the line may end
            joiner = piece
    return found


def _words(part: str, *, last: int) -> list[str]:
    """The words of a command; ``last`` is how the one before ended."""
    try:
        words = shlex.split(part)
    except ValueError:
        return [part.strip()]
    return [word.replace("$?", str(last)) for word in words]


def _step(words: list[str], *, last: int = 0) -> _Step:
    while words and (_ASSIGNMENT.match(words[0]) or words[0] == "exec"):
        words = words[1:]
    if not words:
        return _Step(0.0, 0)
    name, arguments = words[0].rpartition("/")[2], words[1:]
    match name:
        case "sleep":
            return _sleep(arguments)
        case "exit":
            given = arguments[0] if arguments else str(last)
            return _Step(0.0, int(given) & 255 if given.isdigit() else 0, leaves=True)
        case "false":
            return _Step(0.0, 1)
        case "echo" | "printf":
            return _Step(0.0, 0, output=" ".join(arguments))
        case _ if name in _INSTANT:
            return _Step(0.0, 0)
        case _:
            return _Step(None, 0)


def _sleep(arguments: list[str]) -> _Step:
    total = 0.0
    for argument in arguments:
        found = re.fullmatch(r"(\d+\.?\d*|\.\d+)([smhd]?)", argument)
        if argument in {"infinity", "inf"}:
            return _Step(math.inf, 0)
        if found is None:
            return _Step(0.0, 1)
        total += float(found[1]) * _UNITS[found[2]]
    return _Step(total, 0) if arguments else _Step(0.0, 1)
