"""What is wrong with a job's plugins, in words for the author of the job."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """``path`` is the field, ``what`` the fault, ``remedy`` what to write instead."""

    path: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}; {self.remedy}"


class PluginError(Exception):
    """The plugins of a job cannot be used; the text names every problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


def path_of(plugin: str) -> str:
    """The field path of a plugin's arguments."""
    return f"spec.plugins.{plugin}"
