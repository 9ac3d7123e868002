"""Who may read the view, and how many at a time."""

import json

import pytest

from app.api.access import KNOWN_S, Access, Account, Right
from app.api.live import BEAT_S
from app.service.telling.view.audience import Audience
from app.service.telling.view.views import (
    AUDIENCES,
    AUDIENCES_OF_NAMESPACE,
    EVERY_S,
    FOR_OPERATORS,
    VIEWERS,
    VIEWERS_OF_ACCOUNT,
    VIEWERS_OF_NAMESPACE,
)
from tests.api.stand import stand
from tests.api.test_access import AWAY, SECRET, FakeReviews, asked_by
from tests.api.view_reader import ONE, Reader, reading, rows, shared, whole
from tests.builders import make_pod
from tests.service.virtual_time import advance, clock, settle

# --- limits ---------------------------------------------------------------------------------------


async def test_so_many_readers_follow_and_no_more() -> None:
    async with stand() as at:
        readers = [Reader(at) for _ in range(VIEWERS_OF_ACCOUNT + 1)]
        for each in readers:
            each.begin()
        await settle()
        assert [each.status for each in readers] == [200] * VIEWERS_OF_ACCOUNT + [429]
        assert b"readers of over loopback follow the view already" in readers[-1].text
        at.views._viewers["others"] = VIEWERS - VIEWERS_OF_ACCOUNT
        async with reading(at) as refused:
            assert refused.status == 503
        readers[0].hang_up()
        await settle()
        async with reading(at) as served:
            assert served.status == 200
        for each in readers:
            await each.end()


async def test_a_whole_that_is_not_taken_counts_as_a_reader() -> None:
    async with stand() as at:
        readers = [Reader(at, path="/view") for _ in range(VIEWERS_OF_ACCOUNT)]
        for each in readers:
            each.begin()
            each.takes.clear()
        await settle()
        for path in ("/view", "/view/stream"):
            assert (await at.get(path)).status_code == 429
        await readers[0].end()
        assert (await at.get("/view")).status_code == 200
        for each in readers:
            await each.end()
        assert not at.views._viewers


def tenants(count: int, *, home: str = "", namespace: str = "default") -> FakeReviews:
    """So many accounts may read the namespace: service accounts of ``home``, or people."""
    reviews = FakeReviews()
    for number in range(count):
        name = f"system:serviceaccount:{home}:a{number}" if home else f"person-{number}"
        reviews.owners[f"token-{number}"] = Account(name)
        reviews.rights.add((name, Right("decisions", namespace)))
    return reviews


@pytest.mark.parametrize(
    ("home", "most", "why"),
    [
        ("default", VIEWERS_OF_ACCOUNT, "readers of system:serviceaccount:default:* follow the"),
        ("", VIEWERS_OF_NAMESPACE, "readers follow namespace default already"),
    ],
    ids=["service accounts", "people"],
)
async def test_a_tenant_of_many_accounts_leaves_places_to_others(
    home: str, most: int, why: str
) -> None:
    async with asked_by("olgas", reviews=tenants(most + 1, home=home), address=AWAY) as at:
        readers = [
            Reader(at, "/view/stream", "namespace=default", f"token-{number}", AWAY)
            for number in range(most + 1)
        ]
        for each in readers:
            each.begin()
            await settle()
        assert [each.status for each in readers] == [200] * most + [429]
        assert why in readers[-1].text.decode()
        async with reading(at, token="olgas", address=AWAY) as operator:
            assert operator.status == 200
        for each in readers:
            await each.end()
        assert not at.views._viewers
        assert not at.views._told_of


async def test_a_tenant_cannot_take_all_views_of_different_rights() -> None:
    reviews = FakeReviews()
    spaces = [f"n{number}" for number in range(AUDIENCES_OF_NAMESPACE + 1)]
    reviews.rights |= {("tom", Right("decisions", each)) for each in spaces}
    async with asked_by("toms", reviews=reviews, address=AWAY) as at:
        told = [await at.get(f"/view?namespace=default,{each}") for each in spaces]
        assert [each.status_code for each in told] == [200] * AUDIENCES_OF_NAMESPACE + [429]
        assert told[-1].text.endswith("tell of namespace default already\n")
        assert (await at.get(f"/view?namespace={spaces[0]}")).status_code == 200


async def test_tenants_leave_places_to_operators() -> None:
    async with asked_by("toms", address=AWAY) as toms, asked_by("olgas", address=AWAY) as olgas:
        for at in (toms, olgas):
            at.views._viewers["others"] = VIEWERS - FOR_OPERATORS
            for number in range(AUDIENCES):
                readers = frozenset({f"team-{number}"})
                at.views._audiences[readers] = Audience(readers)
        for path in ("/view", "/view/stream"):
            assert (await toms.get(f"{path}?namespace=default")).status_code == 503
        assert (await olgas.get("/view")).status_code == 200
        async with reading(olgas, token="olgas", address=AWAY) as served:
            assert served.status == 200


@pytest.mark.parametrize("path", ["/view", "/view/stream"])
async def test_a_question_about_too_many_namespaces_is_refused(path: str) -> None:
    many = ",".join(f"team-{number}" for number in range(21))
    async with stand() as at:
        answer = await at.get(f"{path}?namespace={many}")
        assert (answer.status_code, answer.text) == (400, "namespace: 21 are more than 20\n")


# --- rights ---------------------------------------------------------------------------------------


async def test_a_tenant_sees_its_jobs_its_queues_and_totals_and_no_name_of_others() -> None:
    rig = shared()
    await rig.cycle()
    async with asked_by("toms", rig) as at:
        view = await whole(at, "default")
        assert view["viewer"] == {"user": "tom", "namespaces": ["default"]}
        assert set(rows(view, "jobs")) == {"default/mine", "default/waits"}
        assert set(rows(view, "queues")) == {"ours", "root"}
        [node] = view["nodes"]
        assert [(each["job"], each["pods"]) for each in node["by"]] == [
            ("default/mine", 2),
            ("", 1),
        ]
        assert view["cluster"]["used"]["cpu"] == 3_000
        assert SECRET not in json.dumps(view)
        assert "theirs" not in json.dumps(view)
        async with reading(at, query="namespace=default", token="toms", address=AWAY) as reader:
            rig.gang("more", size=1, shape=ONE)
            await rig.cycle()
            await advance(EVERY_S + 0.1)
            assert reader.names() == ["whole", "delta"]
            assert SECRET not in reader.text.decode()
    async with asked_by("olgas", rig) as at:
        view = await whole(at)
        assert view["viewer"] == {"user": "olga", "namespaces": None}
        assert f"{SECRET}/plan" in rows(view, "jobs")
        assert rows(await whole(at, "default"), "jobs").keys() == {
            "default/mine",
            "default/more",
            "default/waits",
        }


async def test_what_a_kubelet_says_of_a_pod_names_no_other_namespace_to_a_tenant() -> None:
    rig = shared()
    group = {"scheduling.k8s.io/group-name": "mine"}
    said = f"Evicted: to admit {SECRET}/plan"
    odd = make_pod("odd", annotations=group, node="n1", phase="Running", shape=ONE, trouble=said)
    rig.store(odd)
    await rig.cycle()
    async with asked_by("toms", rig) as at:
        told = rows(await whole(at, "default"), "jobs")["default/mine"]["trouble"]
    assert told.endswith("odd: Evicted: to admit another namespace")


async def test_a_tenant_that_names_no_namespace_is_told_to() -> None:
    async with asked_by("toms") as at:
        refused = await at.get("/view")
        assert refused.status_code == 403
        assert refused.text.endswith("name namespaces: ?namespace=…\n")
        assert (await at.get(f"/view?namespace=default,{SECRET}")).status_code == 403


async def test_a_service_account_that_names_none_is_told_of_its_own_namespace() -> None:
    reviews = FakeReviews()
    name = "system:serviceaccount:default:robot"
    reviews.owners["robots"] = Account(name)
    reviews.rights.add((name, Right("decisions", "default")))
    async with asked_by("robots", shared(), reviews=reviews) as at:
        view = await whole(at)
        assert view["viewer"] == {"user": name, "namespaces": ["default"]}


async def test_a_stream_ends_when_the_token_has_expired() -> None:
    reviews = FakeReviews()
    async with (
        stand(access=Access(reviews, clock=clock)) as at,
        reading(at, query="namespace=default", token="toms", address=AWAY) as reader,
    ):
        del reviews.owners["toms"]
        await advance(BEAT_S * 3)
        assert reader.names() == ["whole"]
        await advance(KNOWN_S)
        assert reader.events()[-1] == ("expired", {"why": "the token is not valid"})
        assert reader.is_over


async def test_a_stream_goes_on_while_tokens_cannot_be_looked_at() -> None:
    reviews = FakeReviews()
    async with (
        stand(access=Access(reviews, clock=clock)) as at,
        reading(at, query="namespace=default", token="toms", address=AWAY) as reader,
    ):
        reviews.fails = True
        await advance(KNOWN_S * 3)
        assert not reader.is_over


async def test_a_stream_without_a_token_from_elsewhere_is_refused() -> None:
    async with (
        stand(access=Access(FakeReviews(), clock=clock)) as at,
        reading(at, address=AWAY) as reader,
    ):
        assert reader.status == 401
