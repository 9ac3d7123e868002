"""What work that writes does when a write fails."""

from app.kit.workqueue import Again
from app.service.ports import Reaction, WriteError


def again_unless_gone(error: WriteError) -> None:
    """What is gone needs no write; raises `Again` for all else, the cache having caught up then."""
    if error.reaction is not Reaction.GONE:
        raise Again(str(error), after_s=error.retry_after_s) from error
