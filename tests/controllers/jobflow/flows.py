"""JobFlows on a stage: their controllers, what users and jobs do to them, what is said of them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from app.controllers.jobflow import templates
from app.controllers.jobflow.controller import INDEXES, JobFlowController
from app.controllers.jobflow.probes import Address, Why
from app.controllers.jobflow.templates import JobTemplateController
from app.controllers.runtime import Controller
from app.wire import times
from app.wire.kinds import JOB_FLOWS, JOB_TEMPLATES, JOBS
from app.wire.unstructured import Key, Object
from tests.controllers import play
from tests.controllers.play import Play, item

FLOW = Key("ns", "flow")
FOLLOWS = {
    **INDEXES,
    JOB_TEMPLATES: {},
    JOBS: {**INDEXES[JOBS], **templates.INDEXES[JOBS]},
}


class FakeProber:
    """Answers what the test says."""

    def __init__(self) -> None:
        self.good: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    async def http(self, at: Address, path: str, headers: Mapping[str, str]) -> Why:
        self.asked.append(("http", f"{at.host}:{at.port}{path} {dict(headers)}"))
        return "" if at.host in self.good else "HTTP 503"

    async def tcp(self, at: Address) -> Why:
        self.asked.append(("tcp", f"{at.host}:{at.port}"))
        return "" if at.host in self.good else "refused"


def run(scenario: Callable[[Play, FakeProber], Awaitable[None]]) -> Play:
    prober = FakeProber()

    def build(stage: Play) -> list[Controller]:
        return [
            JobFlowController(
                stage.stores,
                api=stage.api,
                events=stage.events,
                prober=prober,
                clock=stage.clock,
            ),
            JobTemplateController(stage.stores, api=stage.api),
        ]

    return play.run(lambda stage: scenario(stage, prober), follows=FOLLOWS, build=build)


def template(stage: Play, *names: str) -> None:
    for each in names:
        tasks = [{"name": "server", "replicas": 2, "minAvailable": 1}, {"name": "client"}]
        stage.fake.put(JOB_TEMPLATES, item(JOB_TEMPLATES, each, spec={"tasks": tasks}))


def step(name: str, *targets: str, probe: Any = None, patch: Any = None) -> Object:
    made: Object = {"name": name}
    if targets:
        made["dependsOn"] = {"targets": list(targets)}
    if probe:
        made["dependsOn"]["probe"] = probe
    if patch:
        made["patch"] = {"jobSpec": patch}
    return made


def submit(stage: Play, *flows: Object, **fields: Any) -> Object:
    return stage.fake.put(JOB_FLOWS, item(JOB_FLOWS, "flow", spec={"flows": list(flows), **fields}))


async def move(stage: Play, job: str, phase: str, **more: Any) -> None:
    state = {"phase": phase, "lastTransitionTime": times.seconds(stage.clock())}
    stage.fake.edit(JOBS, Key("ns", f"flow-{job}"), {"status": {"state": state, **more}})
    await stage.settle()


def status(stage: Play) -> Object:
    found: Object = stage.stored(JOB_FLOWS, FLOW).get("status") or {}
    return found


def phase(stage: Play) -> str:
    return str(status(stage)["state"]["phase"])


def jobs(stage: Play) -> list[str]:
    return stage.names(JOBS)
