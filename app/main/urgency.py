"""Which process goes first where several want a core.

kube-scheduler's loop stands still until Filter is answered, so on a busy machine each millisecond
that the extender waits for a core is one for every pod. Among the processes of one container the
same holds; between containers their CPU requests decide, and this changes nothing.
"""

import logging
import os

log = logging.getLogger(__name__)


def be_urgent(by: int) -> None:
    """Lower this process's niceness by ``by``, from what it was started with, where permitted."""
    if not by:
        return
    try:
        os.nice(-by)
    except PermissionError:
        log.info("not permitted to lower the niceness, left as it is", extra={"by": by})
