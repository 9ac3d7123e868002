"""Work that moves: always some of everything, and never more than the cluster can keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from app.sandbox.quantities import parse_milli
from app.sandbox.story.moving import KEPT_S, NODES, STREAMS, MovingWork, queues
from app.wire.documents import Document
from tests.scale import dice

HOUR_S = 3600


@dataclass
class World:
    """A cluster with room for all that is made, in which time is a number."""

    work: MovingWork
    now: float = 0.0
    jobs: dict[str, Document] = field(default_factory=dict)
    ends_at: dict[str, float] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    most: int = 0

    def second(self) -> None:
        self.now += 1
        moves = self.work.moves(self.now, list(self.jobs.values()))
        for name in moves.delete:
            del self.jobs[name]
        for job in moves.create:
            name = job["metadata"]["name"]
            assert name not in self.jobs
            self.jobs[name] = job
            self.made.append(name)
            self.ends_at[name] = self.now + self.runs_s(job)
        self.most = max(self.most, len(self.jobs))
        self.end()

    def runs_s(self, job: Document) -> float:
        if job["metadata"]["name"].startswith("too-large"):
            return HOUR_S * 10
        command = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"]
        return float(command[1])

    def end(self) -> None:
        for name in list(self.jobs):
            over = self.now - self.ends_at[name]
            if over >= 0:
                self.jobs[name] = {**self.jobs[name], "status": {"state": {"phase": "Completed"}}}
            if over >= KEPT_S:
                del self.jobs[name]


def test_an_hour_of_it_keeps_few_jobs_and_all_streams_flow() -> None:
    world = World(MovingWork(dice()))
    for _ in range(HOUR_S):
        world.second()
    assert world.most < 40
    assert len(world.made) == len(set(world.made))
    for stream in STREAMS:
        made = sum(name.startswith(f"{stream.name}-") for name in world.made)
        assert made >= 0.2 * HOUR_S / stream.every_s, stream.name


def test_a_stream_whose_jobs_do_not_end_makes_no_more_of_them() -> None:
    work, jobs = MovingWork(Random(1)), list[Document]()
    for second in range(HOUR_S):
        jobs += work.moves(second, jobs).create
    assert {
        stream.name: sum(job["metadata"]["name"].startswith(stream.name) for job in jobs)
        for stream in STREAMS
    } == {stream.name: stream.most for stream in STREAMS}


def test_a_job_that_never_runs_is_given_up() -> None:
    [stream] = [each for each in STREAMS if each.given_up_s]
    world = World(MovingWork(Random(1), streams=[stream]))
    for _ in range(stream.given_up_s):
        world.second()
    assert list(world.jobs) == ["too-large-1"]
    world.second()
    assert not world.jobs


def test_the_streams_are_what_they_are_there_for() -> None:
    whole = NODES.count * int(NODES.cpu) * 1000
    asks = {s.name: parse_milli(s.requests["cpu"]) for s in STREAMS}
    pods = {s.name: s.pods for s in STREAMS}
    assert sum(asks[s.name] * s.pods * s.most for s in STREAMS) > whole, "some always wait"
    assert asks["too-large"] * pods["too-large"] > whole
    [small] = [queue for queue in queues() if queue["metadata"]["name"] == "small"]
    limit = parse_milli(small["spec"]["capability"]["cpu"])
    one = asks["import"] * pods["import"]
    assert one <= limit < 2 * one
    assert {s.queue for s in STREAMS} == {queue["metadata"]["name"] for queue in queues()}
