"""One request for every object of a file: for the others too where one is refused."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from app.cli.endings import CommandFailed, of
from app.kube import errors

T = TypeVar("T")
R = TypeVar("R")


async def each(
    items: Sequence[T], do: Callable[[T], Awaitable[R]], called: Callable[[T], str]
) -> list[R]:
    """The outcomes for all objects; CommandFailed, as the first that was refused, if any was."""
    done, failures = [], []
    for item in items:
        try:
            done.append(await do(item))
        except (errors.Refused, errors.Outdated) as error:
            failures.append((called(item), of(error)))
    if not failures:
        return done
    several = len(items) > 1
    told = (
        f"{name}: {why}" if several and name not in str(why) else str(why) for name, why in failures
    )
    raise CommandFailed(failures[0][1].code, "; ".join(told))
