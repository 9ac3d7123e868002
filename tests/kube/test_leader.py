"""Leader election in virtual time, on Leases kept in memory."""

import asyncio
import heapq
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from app.kube.client import ApiClient, Body
from app.kube.config import Connection
from app.kube.errors import AlreadyExists, Conflict, NotFound, Transport
from app.kube.leader import LeaderElector, LeaseId, LeaseTiming
from app.telemetry import metrics
from tests.kube.server import LOGIN_PAGE, ScriptedServer, answer, failure

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/work"
HOME = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
TIMING = LeaseTiming(duration_s=15.0, renew_deadline_s=10.0, retry_s=2.0)


class VirtualTime:
    """Time that passes only when told to, waking sleepers in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def clock(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._order), future))
        await future

    async def run_until(self, moment: float) -> None:
        await settle()
        while self._sleepers and self._sleepers[0][0] <= moment:
            self.now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await settle()
        self.now = moment


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Leases:
    """Optimistic concurrency as the API server has it; can be cut off from one side."""

    def __init__(self) -> None:
        self.stored: dict[str, object] | None = None
        self.version = 0
        self.log: list[str] = []

    def spec(self) -> dict[str, object]:
        assert self.stored is not None
        spec = self.stored["spec"]
        assert isinstance(spec, dict)
        return spec

    def keep(self, obj: dict[str, object]) -> bytes:
        self.version += 1
        metadata = obj["metadata"]
        assert isinstance(metadata, dict)
        self.stored = obj | {"metadata": metadata | {"resourceVersion": str(self.version)}}
        return json.dumps(self.stored).encode()


class Store:
    """One process's way to the Leases."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self.cut_off = False
        self.logged_out = False
        self.answers_late = False
        """What is asked for is done, and then nothing is heard of it."""

    async def get(self, path: str) -> bytes:
        self._pass()
        assert path == PATH
        if self.logged_out:
            return LOGIN_PAGE
        if self.leases.stored is None:
            raise NotFound("no lease", status=404)
        return json.dumps(self.leases.stored).encode()

    async def create(self, path: str, body: Body) -> bytes:
        self._pass()
        assert path == HOME
        if self.leases.stored is not None:
            raise AlreadyExists("lease", status=409)
        return await self._answer(self.leases.keep(parsed(body)))

    async def replace(self, path: str, body: Body) -> bytes:
        self._pass()
        obj = parsed(body)
        assert self.leases.stored is not None
        if version(obj) != version(self.leases.stored):
            raise Conflict("changed", status=409)
        return await self._answer(self.leases.keep(obj))

    async def _answer(self, body: bytes) -> bytes:
        if self.answers_late:
            self.answers_late = False
            await asyncio.Event().wait()
        return body

    def _pass(self) -> None:
        if self.cut_off:
            raise Transport("cut off", sent=False)


def parsed(body: Body) -> dict[str, object]:
    assert isinstance(body, bytes)
    obj = json.loads(body)
    assert isinstance(obj, dict)
    return obj


def version(obj: dict[str, object]) -> object:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    return metadata["resourceVersion"]


class Candidate:
    """An elector, its way to the Leases and what it did."""

    def __init__(self, name: str, time: VirtualTime, leases: Leases) -> None:
        self.store = Store(leases)
        self.history: list[tuple[float, str]] = []
        self.error: Exception | None = None
        self._time = time
        self.elector = LeaderElector(
            self.store,
            LeaseId(namespace="ns", name="work", identity=name),
            timing=TIMING,
            clock=time.clock,
            now=time.wall,
            sleep=time.sleep,
        )
        self.task = asyncio.ensure_future(self.elector.run(self._started, self._stopped))

    async def _started(self) -> None:
        self.history.append((self._time.now, "started"))
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()

    async def _stopped(self) -> None:
        self.history.append((self._time.now, "stopped"))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def run(story: Callable[[VirtualTime, Leases], Awaitable[None]]) -> None:
    async def main() -> None:
        await story(VirtualTime(), Leases())

    asyncio.run(main())


def test_the_first_one_leads_at_once_and_renews() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a = Candidate("a", time, leases)
        await time.run_until(0.0)
        assert a.elector.leading
        assert leases.spec() == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }
        await time.run_until(60.0)
        assert a.history == [(0.0, "started")]
        assert leases.spec()["renewTime"] == "2026-01-01T00:01:00.000000Z"
        assert leases.spec()["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        await a.stop()

    run(story)


def test_who_has_never_led_says_so() -> None:
    time = VirtualTime()
    LeaderElector(
        Store(Leases()),
        LeaseId(namespace="ns", name="never-led", identity="a"),
        timing=TIMING,
        clock=time.clock,
        now=time.wall,
    )
    assert metrics.REGISTRY.get_sample_value("pumice_leader", {"lease": "never-led"}) == 0


def test_the_second_one_waits_as_long_as_the_first_renews() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a, b = Candidate("a", time, leases), Candidate("b", time, leases)
        await time.run_until(300.0)
        assert [a.elector.leading, b.elector.leading] == [True, False]
        await b.stop()
        assert leases.spec()["holderIdentity"] == "a"
        await a.stop()

    run(story)


def test_a_leader_that_stops_gives_the_lease_back_and_the_next_need_not_wait() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a, b = Candidate("a", time, leases), Candidate("b", time, leases)
        await time.run_until(20.0)
        await a.stop()
        assert a.history == [(0.0, "started"), (20.0, "stopped")]
        assert leases.spec()["holderIdentity"] == ""
        await time.run_until(22.0)
        assert b.elector.leading
        assert leases.spec()["leaseTransitions"] == 1
        await b.stop()

    run(story)


@pytest.mark.parametrize("renewals", [0, 3], ids=["taking it", "renewing it"])
def test_a_lease_is_given_back_by_who_stops_in_the_middle_of_writing_it(renewals: int) -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        moment = 2.0 * renewals
        a = Candidate("a", time, leases)
        if renewals:
            await time.run_until(moment - 1)
        a.store.answers_late = True
        await time.run_until(moment)
        assert leases.spec()["holderIdentity"] == "a"
        b = Candidate("b", time, leases)
        await a.stop()
        await time.run_until(moment + 2)
        assert b.elector.leading
        await b.stop()

    run(story)


def test_a_leader_that_is_cut_off_stops_before_another_begins() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a, b = Candidate("a", time, leases), Candidate("b", time, leases)
        await time.run_until(20.0)
        a.store.cut_off = True
        await time.run_until(60.0)
        assert a.history == [(0.0, "started"), (30.0, "stopped")]
        assert b.history == [(36.0, "started")]
        a.store.cut_off = False
        await time.run_until(120.0)
        assert [a.elector.leading, b.elector.leading] == [False, True]
        await a.stop()
        await b.stop()

    run(story)


def test_a_leader_that_is_cut_off_for_less_than_the_deadline_stays() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a, b = Candidate("a", time, leases), Candidate("b", time, leases)
        await time.run_until(20.0)
        a.store.cut_off = True
        await time.run_until(29.0)
        a.store.cut_off = False
        await time.run_until(100.0)
        assert a.history == [(0.0, "started")]
        assert b.history == []
        await a.stop()
        await b.stop()

    run(story)


def test_what_is_no_lease_is_a_try_that_failed() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a = Candidate("a", time, leases)
        a.store.logged_out = True
        await time.run_until(5.0)
        assert not a.elector.leading
        a.store.logged_out = False
        await time.run_until(7.0)
        assert a.elector.leading
        a.store.logged_out = True
        await time.run_until(12.0)
        a.store.logged_out = False
        await time.run_until(60.0)
        assert a.history == [(6.0, "started")]
        await a.stop()

    run(story)


def test_a_dead_holder_is_replaced_after_its_duration_seen_by_our_own_clock() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        leases.keep(
            {
                "metadata": {"name": "work", "namespace": "ns", "labels": {"keep": "me"}},
                "spec": {
                    "holderIdentity": "dead",
                    "leaseDurationSeconds": 15,
                    "renewTime": "1999-01-01T00:00:00.000000Z",
                },
            }
        )
        a = Candidate("a", time, leases)
        await time.run_until(14.0)
        assert not a.elector.leading
        await time.run_until(16.0)
        assert a.elector.leading
        assert leases.stored is not None
        metadata = leases.stored["metadata"]
        assert isinstance(metadata, dict)
        assert metadata["labels"] == {"keep": "me"}
        await a.stop()

    run(story)


def test_a_dead_holder_has_as_long_as_it_promised_itself() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        leases.keep(
            {
                "metadata": {"name": "work", "namespace": "ns"},
                "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 60},
            }
        )
        a = Candidate("a", time, leases)
        await time.run_until(59.0)
        assert not a.elector.leading
        await time.run_until(63.0)
        assert a.elector.leading
        await a.stop()

    run(story)


def test_a_lease_taken_by_somebody_else_ends_the_leading() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a = Candidate("a", time, leases)
        await time.run_until(5.0)
        leases.keep(
            {
                "metadata": {"name": "work", "namespace": "ns"},
                "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15},
            }
        )
        await time.run_until(6.0)
        assert a.history == [(0.0, "started"), (6.0, "stopped")]
        await a.stop()
        assert leases.spec()["holderIdentity"] == "thief"

    run(story)


def test_of_two_who_create_the_lease_one_fails_and_waits() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a, b = Candidate("a", time, leases), Candidate("b", time, leases)
        await time.run_until(4.0)
        assert [a.elector.leading, b.elector.leading].count(True) == 1
        await a.stop()
        await b.stop()

    run(story)


def test_work_that_fails_ends_the_election_and_gives_the_lease_back() -> None:
    async def story(time: VirtualTime, leases: Leases) -> None:
        a = Candidate("a", time, leases)
        a.error = RuntimeError("broken")
        await time.run_until(2.0)
        with pytest.raises(RuntimeError, match="broken"):
            await a.task
        assert a.history == [(0.0, "started"), (2.0, "stopped")]
        assert leases.spec()["holderIdentity"] == ""

    run(story)


def test_the_client_is_a_store_of_leases(server: ScriptedServer, connection: Connection) -> None:
    lease = {"metadata": {"name": "work", "resourceVersion": "1"}, "spec": {"holderIdentity": "a"}}
    server.on("GET", PATH, failure(404, "NotFound"), answer(lease))
    server.on("POST", HOME, answer(lease, status=201))
    server.on("PUT", PATH, answer(lease))

    async def story() -> None:
        time = VirtualTime()
        started = asyncio.Event()

        async def on_started() -> None:
            started.set()

        async def on_stopped() -> None:
            pass

        async with ApiClient(connection) as client:
            identity = LeaseId(namespace="ns", name="work", identity="a")
            elector = LeaderElector(
                client,
                identity,
                timing=TIMING,
                clock=time.clock,
                now=time.wall,
                sleep=time.sleep,
            )
            task = asyncio.ensure_future(elector.run(on_started, on_stopped))
            await started.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())
    assert [s.method for s in server.seen] == ["GET", "POST", "GET", "PUT"]


@pytest.mark.parametrize(("duration", "deadline", "retry"), [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_a_timing_that_is_not_safe_is_refused(
    duration: float, deadline: float, retry: float
) -> None:
    with pytest.raises(ValueError, match="duration > renew deadline > retry"):
        LeaseTiming(duration_s=duration, renew_deadline_s=deadline, retry_s=retry)
