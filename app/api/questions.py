"""What keeps a question about the planner, or about decisions, from its answer, over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.api.body import BadRequest
from app.api.imagined import CannotImagine
from app.cache.gangs.imagined import UnknownResource
from app.kit.turns import TooMany
from app.service.cycle.simulations import UnknownNode
from app.service.ports import TakesTooLong


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
