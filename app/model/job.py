"""What the scheduler needs to know of a vcjob: what its pods will look like."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.model.shape import PodShape


@dataclass(frozen=True, slots=True, eq=False)
class JobTemplate:
    """``role_shapes``: task name -> the shape of its pods (volcano.md §2.3)."""

    uid: str
    namespace: str
    name: str
    role_shapes: Mapping[str, PodShape]
