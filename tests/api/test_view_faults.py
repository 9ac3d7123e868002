"""A group that fails hurts no more of the view than its own row, which says so."""

import logging
from typing import Any

import pytest

from app.cache.gangs.groups import Group
from app.model.reason import Cause
from app.service.telling.view import state as state_module
from app.service.telling.view.jobs import job_row
from app.service.telling.view.views import EVERY_S
from tests.api.stand import stand
from tests.api.view_reader import BIG, ONE, rows, whole
from tests.service.rig import Rig
from tests.service.test_faulty_groups import Plugin, use
from tests.service.virtual_time import advance

GOOD, BAD = "default/good", "default/bad"


def cluster() -> Rig:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.gang("good", size=1, shape=ONE)
    rig.gang("bad", size=2, gated=True, shape=BIG)
    return rig


def failing(function: Any) -> Any:
    """``function``, which fails where it is asked about the bad group."""

    def made(*args: Any, **more: Any) -> Any:
        if any(isinstance(each, Group) and each.key == BAD for each in args):
            raise KeyError("secret")
        return function(*args, **more)

    return made


async def test_a_row_that_cannot_be_made_says_so_beside_all_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = cluster()
    await rig.cycle()
    async with stand(rig) as at:
        with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
            patched.setattr(state_module, "job_row", failing(job_row))
            told = rows(await whole(at), "jobs")
        assert told[GOOD]["stage"] == "planned"
        assert (told[BAD]["cause"], told[BAD]["waits"]) == (Cause.PLANNING_FAILED.value, True)
        assert "KeyError" in told[BAD]["reason"]
        assert "secret" not in told[BAD]["reason"]
        assert [each.getMessage() for each in caplog.records] == [
            "the row of a group cannot be made"
        ]
        await advance(2 * EVERY_S)
        assert rows(await whole(at), "jobs")[BAD]["cause"] != Cause.PLANNING_FAILED.value


async def test_a_group_that_a_plugin_fails_at_is_told_beside_all_others() -> None:
    rig = cluster()
    use(rig, Plugin("bad"), "gang_order")
    await rig.cycle()
    async with stand(rig) as at:
        told = rows(await whole(at), "jobs")
        assert told[BAD]["cause"] == Cause.PLANNING_FAILED.value
        assert told[BAD]["place"] is None
        assert told[GOOD]["cause"] == ""
