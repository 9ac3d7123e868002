"""What the extender tells its front, and in which order."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

from app.api.extender import extender_calls
from app.front import doors
from app.main.serving.link import Link
from app.model.ids import NodeName, PodUid
from app.service.calls.front_reservations import FrontReservations
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.front import Frame, Frames, MessageType, decode_change
from app.wire.paths import VERBS
from tests.api.stand import args, services_of
from tests.service.rig import Rig


class Front:
    """The other end of the control socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._frames = reader, writer, Frames()
        self._heard: list[Frame] = []

    async def hears(self) -> Frame:
        while not self._heard:
            self._heard = self._frames.feed(await self._reader.read(2**16))
        return self._heard.pop(0)

    async def hears_of_places(self) -> dict[PodUid, NodeName]:
        """Who has one now, or another one."""
        frame = await self.hears()
        assert frame.kind == MessageType.CHANGE
        return {uid: place.node for uid, place in decode_change(frame.body).given.items()}

    def hands_on(self, verb: str, args: dict[str, Any]) -> None:
        body = json.dumps(args).encode()
        self._writer.write(Frame(MessageType.CALL, body, 1, VERBS.index(verb)).encode())


def run(scenario: Callable[[Rig, Front], Awaitable[None]]) -> None:
    """An extender that decides, and its front."""

    async def main() -> None:
        rig = Rig()
        rig.planning.leadership.deciding.set()
        mine, theirs = socket.socketpair()
        mine.setblocking(False)
        entrance, its_entrance = doors.pair()
        link = Link(
            entrance,
            places=FrontReservations(
                cache=rig.cache,
                cycle=rig.planning.cycle,
                leadership=rig.planning.leadership,
                limits=rig.limits,
                news=lambda: link.news(),
            ),
            calls=extender_calls(services_of(rig)),
            adopt=lambda *_: None,
            told=lambda _: None,
        )
        with closing(its_entrance):
            async with asyncio.timeout(20):
                await asyncio.get_running_loop().create_connection(lambda: link, sock=mine)
                reader, writer = await asyncio.open_connection(sock=theirs)
                await scenario(rig, Front(reader, writer))
                writer.close()
                await link.ended.wait()

    asyncio.run(main())


def test_who_loses_a_place_by_an_answer_is_known_before_the_answer() -> None:
    """Or kube-scheduler comes for that one next, and both are told the same node."""

    async def scenario(rig: Rig, front: Front) -> None:
        assert await front.hears_of_places() == {}
        rig.node("n1", "n2", cpu=1000)
        rig.gang("g", size=2)
        await rig.cycle()
        mine, theirs = PodUid("uid-g-0"), PodUid("uid-g-1")
        of = await front.hears_of_places()
        sample = [of[theirs], *(f"other-{number}" for number in range(SAMPLE_FLOOR))]
        front.hands_on("filter", args("g-0", nodes=sample))
        assert await front.hears_of_places() == {mine: of[theirs], theirs: of[mine]}
        answer = await front.hears()
        assert answer.kind == MessageType.ANSWER
        assert json.loads(answer.body)["NodeNames"] == [of[theirs]]

    run(scenario)
