"""Success answers are read as the API server's, unless they came from something in between.

Between us and the API server there may be proxies that answer a login page to whatever is asked, as
a success. When asked again, the API server itself may answer.
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
