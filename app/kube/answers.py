"""What an answer that says success brings, unless somebody else gave it.

Between us and the API server there may be proxies that answer a login page to whatever is asked,
as a success. Asked again, it may be the API server that answers.
"""

from collections.abc import Callable
from typing import TypeVar

from app.kube.errors import Unreadable

T = TypeVar("T")


def decoded(answer: bytes, decode: Callable[[bytes], T]) -> T:
    """What ``decode`` makes of ``answer``; Unreadable where that is not what was asked for."""
    try:
        return decode(answer)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the answer is not what was asked for: {error}", status=200) from error
