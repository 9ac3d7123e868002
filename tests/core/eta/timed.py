"""A crowd with a clock: jobs end when their time is over, and the planner looks at once."""

from collections.abc import Mapping, Sequence

from app.core.eta.course import Expected
from app.core.eta.forecast import Eta, Forecast, forecast_steps
from app.core.eta.run_times import RunTime
from app.core.policy import Policies
from app.model.ids import group_key
from app.model.node import Node
from app.model.workload import Queue
from tests.core.crowds import Crowd, Job


class Timed(Crowd):
    """Jobs with the seconds that each runs; those that run at first began at 0."""

    def __init__(
        self,
        jobs: Sequence[tuple[Job, float]],
        nodes: Sequence[Node],
        by: Policies,
        *,
        queues: Sequence[Queue] = (),
    ) -> None:
        self.clock = 0.0
        self.seconds = {job.name: seconds for job, seconds in jobs}
        self.began: dict[str, float] = {}
        self.first_rows: dict[str, list[int]] = {}
        super().__init__([job for job, _ in jobs], nodes, by, queues=queues)
        self._note()

    @property
    def now(self) -> float:
        return self.clock

    def forecast(self, known: Mapping[str, RunTime] | None = None, **options: object) -> Forecast:
        """What is forecast at this moment, where nothing is said by the jobs' true times."""
        run_times = {name: RunTime(declared=seconds) for name, seconds in self.seconds.items()}
        run_times = run_times if known is None else dict(known)
        expected = Expected(
            {group_key("default", name): each for name, each in run_times.items()},
            {group_key("default", name): at for name, at in self.began.items()},
        )
        steps = forecast_steps(self.snapshot(), self.by, expected, now=self.now, **options)  # type: ignore[arg-type]
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: Forecast = done.value
                return found

    def eta(self, name: str, known: Mapping[str, RunTime] | None = None) -> Eta:
        """That of one job."""
        return self.forecast(known).etas[group_key("default", name)]

    def run(self) -> None:
        """Let it all happen, until no job ends any more."""
        while True:
            self.round()
            self._note()
            ends = [self.began[name] + self.seconds[name] for name in self.jobs if self._runs(name)]
            if not ends:
                return
            self.clock = min(ends)
            over = [
                name
                for name in self.jobs
                if self._runs(name) and self.began[name] + self.seconds[name] <= self.clock
            ]
            self.end(*over)

    def _runs(self, name: str) -> bool:
        return name in self.began

    def _note(self) -> None:
        for name, job in self.jobs.items():
            if self.runs(name) >= job.needs and name not in self.began:
                self.began[name] = self.clock
                self.first_rows[name] = sorted(set(self.where(name)))
