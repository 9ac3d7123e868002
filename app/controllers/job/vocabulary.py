"""Volcano's words for what a job is in, what can be done to it and what can happen to it."""

from enum import Enum
from typing import Final


class Phase(Enum):
    """``status.state.phase``."""

    NEW = ""
    PENDING = "Pending"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


class Action(Enum):
    """What a policy or a Command asks for."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"


class Event(Enum):
    """What happened, in the words of policies; that a pod runs is answered by none."""

    POD_PENDING = "PodPending"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    JOB_UPDATED = "JobUpdated"
    STRANDED = "Stranded"
    """Ours: asked for by an annotation (:mod:`app.core.gangs.stranded`), not by a policy."""


ANY: Final = "*"

FAILURES: Final = frozenset(
    {Event.POD_FAILED, Event.TASK_FAILED, Event.POD_PENDING, Event.TASK_COMPLETED}
)
"""Restarts because of them count towards `maxRetry`: without a bound they could go on for ever.

The rest is the doing of users and of the cluster: Commands, changes, evictions, lost nodes.
"""

FINISHED: Final = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.TERMINATED})
TARGETED: Final = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})

JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
TASK_INDEX: Final = "volcano.sh/task-index"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
"""On a pod that the controller itself takes away: its deletion is no eviction."""

EVICTED_AT: Final = "pumice.sh/evicted-at"
"""On a pod that takes the place of an evicted one: when that was."""
JOB_SIZE: Final = "pumice.sh/job-size"
"""On a PodGroup: the last size of the job that policies have answered."""
SETTLED: Final = "pumice.sh/settled"
"""On a pod that had succeeded when its task shrank to such pods: it completes no task."""
ACCEPTED_COMMAND: Final = "pumice.sh/command"
"""On a job: the Command that is being executed, as ``action/uid``."""
