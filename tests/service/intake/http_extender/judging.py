"""A scheduler's side with a server that the plugin ``extender`` asks, in virtual time."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from app.core.texts import describe
from app.model.http_extender import Verb
from app.service.intake.http_extender.events import HttpExtenderEvents
from app.service.intake.http_extender.follower import HttpExtenderFollower
from app.service.ports import HttpExtenderError
from tests.service import virtual_time
from tests.service.rig import Rig, running, working

URL = "http://judge:8713"
Json = dict[str, Any]


class Judge:
    """Says what the test wrote down; a text instead of an answer is why it fails."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[Json], Json] | str] = {}
        self.takes_s = 0.0
        self.asked: defaultdict[str, list[Json]] = defaultdict(list)
        self.manifests: dict[str, bytes] = {}
        self.under_way = self.most_under_way = 0

    def says(self, verb: Verb, answer: Callable[[Json], Json] | Json | str) -> None:
        """Answer so from now on."""
        if isinstance(answer, dict):
            fixed = answer
            self.answers[verb] = lambda _: fixed
        else:
            self.answers[verb] = answer

    async def ask(self, url: str, body: bytes, *, timeout_s: float) -> bytes:
        assert url.startswith(f"{URL}/")
        verb = url.removeprefix(f"{URL}/")
        question = json.loads(body)
        self.asked[verb].append(question)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(min(self.takes_s, timeout_s))
        finally:
            self.under_way -= 1
        if self.takes_s > timeout_s:
            raise HttpExtenderError(f"no answer within {timeout_s:g} s")
        answer = self.answers.get(verb, "HTTP 404")
        if isinstance(answer, str):
            raise HttpExtenderError(answer)
        return json.dumps(answer(question)).encode()

    async def read_manifest(self, namespace: str, name: str) -> bytes | None:
        return self.manifests.get(f"{namespace}/{name}")

    def nodes(self, verb: Verb = Verb.PREDICATE) -> list[str]:
        """The nodes that it was asked about."""
        return [asked["node"]["Name"] for asked in self.asked[verb]]


def conf(*verbs: Verb, actions: str = "enqueue, allocate, backfill", **more: Any) -> str:
    """A configuration that asks for these verbs, at paths that are called like them."""
    arguments = {f"extender.{verb}Verb": verb.value for verb in verbs}
    arguments |= {"extender.urlPrefix": URL} | {f"extender.{k}": v for k, v in more.items()}
    first = [{"name": "priority"}, {"name": "gang"}]
    second = [{"name": "predicates"}, {"name": "extender", "arguments": arguments}]
    tiers = [{"plugins": first}, {"plugins": second}]
    return yaml.safe_dump({"actions": actions, "tiers": tiers})


class JudgedRig(Rig):
    """Everything wired as in the process; :meth:`at_work` runs it."""

    def __init__(self, text: str, **how: Any) -> None:
        super().__init__(**how)
        assert self.parts.configuration.load(text)
        self.judge = Judge()
        parts = self.parts
        self.follower = HttpExtenderFollower(
            self.cache,
            server=self.judge,
            configuration=parts.configuration,
            activity=parts.activity,
            victims=parts.asked_victims,
            refusals=lambda: parts.planning.last_plan.refusals,
            clock=self.clock,
        )
        self.told = HttpExtenderEvents(
            self.cache,
            server=self.judge,
            configuration=parts.configuration,
            clock=self.clock,
        )
        self.follower.told.append(self.planning.pace.notice)
        self.planning.cycle.after += [self.follower.after_cycle, self.told.after_cycle]
        self.planning.publisher.told.append(self.told.placed)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Cycles run, and the server is asked and told."""
        with working(self), running(self.follower.run(), self.told.run()):
            yield

    def places(self, *names: str) -> list[str]:
        """The nodes of these pods, empty for those without a place."""
        return [self.place(name) for name in names]

    def why(self, group: str) -> str:
        """Why the group waits, in words."""
        return describe(self.refusals[self.key(group)])


advance, settle = virtual_time.advance, virtual_time.settle
