"""Which controllers run, and that each runs alone too."""

import asyncio

import pytest

from app.controllers.job.slots import Slots
from app.controllers.store import Store
from app.main.controller_list import OFFERS, Means, chosen, indexes
from app.settings.controllers import ControllersSettings
from tests.controllers.fake_api import FakeApi, FakeEvents
from tests.controllers.hypernode.discovering import FakeWeb

ALL = [
    "colocation-config-controller",
    "cronjob-controller",
    "gc-controller",
    "hyperNode-controller",
    "job-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "pg-controller",
    "queue-controller",
]


class NoSlots:
    """Nobody to ask."""

    async def get(self, namespace: str, podgroup: str) -> Slots | None:
        """Nothing."""
        return None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("*", ALL),
        ("*,-sharding-controller", ALL),
        ("*,-job-controller,-hyperNode-controller", [*ALL[:3], *ALL[5:]]),
        ("gc-controller, queue-controller", ["gc-controller", "queue-controller"]),
        ("-gc-controller", []),
        ("", []),
        ("sharding-controller", []),
    ],
)
def test_names_choose(asked: str, expected: list[str]) -> None:
    assert sorted(chosen(asked)) == sorted(expected)


@pytest.mark.parametrize("asked", ["jobs", "*,-gc", "**"])
def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(asked: str) -> None:
    with pytest.raises(ValueError, match="cronjob-controller"):
        chosen(asked)


@pytest.mark.parametrize("name", ALL)
def test_a_controller_has_all_that_it_follows_when_it_runs_alone(name: str) -> None:
    async def build() -> None:
        offer = OFFERS[name]
        stores = {kind: Store(by) for kind, by in indexes({name: offer}).items()}
        means = Means(
            stores=stores,
            api=FakeApi(lambda: 0.0),
            events=FakeEvents(),
            slots=NoSlots(),
            clock=lambda: 0.0,
            web=FakeWeb(),
            settings=ControllersSettings(),
        )
        made = offer.build(means)
        assert {controller.name for controller in made} == {name}
        for controller in made:
            assert set(controller.kinds) <= set(stores)
        assert offer.workers(means.settings) > 0

    asyncio.run(build())


def test_all_together_have_the_indexes_of_each() -> None:
    together = indexes(OFFERS)

    for offer in OFFERS.values():
        for kind, by in offer.follows.items():
            assert by.items() <= together[kind].items()
