"""What keeps a question about the planner, or about decisions, from its answer, over HTTP."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.api.body import BadRequest
from app.api.imagined import CannotImagine
from app.cache.gangs.imagined import UnknownResource
from app.kit.turns import TooMany
from app.model.viewer import Viewer
from app.service.cycle.simulations import UnknownNode
from app.service.ports import TakesTooLong

MOST_OF_TENANT: Final = 4
"""Questions about one namespace that its tenants may have answered at a time."""


class Questions:
    """The questions of tenants that are under way, which leave room for those of others."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    @contextmanager
    def of(self, viewer: Viewer) -> Iterator[None]:
        """Inside, a question of the reader is answered; `BadRequest` 429 if it is one too many."""
        namespace = viewer.namespace
        if namespace is None:
            yield
            return
        if self._of[namespace] >= MOST_OF_TENANT:
            why = f"{MOST_OF_TENANT} questions about namespace {namespace} are being answered"
            raise BadRequest(f"{why}; ask again later", status=429)
        self._of[namespace] += 1
        try:
            yield
        finally:
            self._of[namespace] -= 1
            if not self._of[namespace]:
                del self._of[namespace]


@contextmanager
def refusing() -> Iterator[None]:
    """Inside, what a question fails by is a `BadRequest`, with the status that belongs to it."""
    try:
        yield
    except CannotImagine as error:
        raise BadRequest(str(error), status=error.status) from None
    except UnknownResource as error:
        raise BadRequest(f"{error}: a pod that asks for it never runs", status=404) from None
    except UnknownNode as error:
        raise BadRequest(f"drain: {error}", status=404) from None
    except TooMany as error:
        raise BadRequest(str(error), status=429) from None
    except TakesTooLong as error:
        raise BadRequest(str(error), status=503) from None
