"""Values of options looked at as they are read, so that a complaint names the option."""

from collections.abc import Callable

import typer


def checked(by: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """A callback of an option: the value as given; BadParameter where ``by`` raises ValueError."""

    def callback(value: str | None) -> str | None:
        try:
            if value is not None:
                by(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return value

    return callback


def unless_empty(by: Callable[[str], object]) -> Callable[[str], object]:
    """Check a value by ``by`` unless it is empty, which stands for none."""
    return lambda value: by(value) if value else None
