"""predicates: no pod goes where it cannot have its volumes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.placement import volume_rules
from app.core.placement.attachments import Attachments
from app.core.placement.volume_books import VolumeBooks
from app.core.placement.volume_reach import Reach
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang
from app.model.ids import NodeName
from app.model.node import Node
from app.model.reason import Cause
from app.model.shape import (
    ClaimSpec,
    LabelSelector,
    NodeTerm,
    Operator,
    PodShape,
    Requirement,
    VolumeAsk,
)
from app.model.volumes import CsiDriver, PodVolumes, StorageCapacity, StorageClass, Volumes
from tests.builders import GIB, make_gang, make_node, make_pod, make_shape, make_snapshot
from tests.core.actions.rigs import Outcome, cycle, members, policies
from tests.running import Runs, make_running
from tests.scale import examples
from tests.volumes import (
    DRIVER,
    FAST,
    HOST,
    LOCAL,
    ZONE,
    attached,
    claim,
    limit,
    on,
    pod_with,
    storage,
    using,
    volume,
    volumes,
)

NOWHERE = volume_rules.NOT_USABLE


def gang(name: str, count: int, shape: PodShape, **fields: Any) -> Gang:
    return make_gang(name, waiting=members(name, count, shape=shape), **fields)


def nodes(*zones: str, cpu: int = 64) -> tuple[Node, ...]:
    """Nodes ``n0``, ``n1``, … in these zones."""
    return tuple(
        make_node(f"n{i}", cpu=cpu * 1000, labels={HOST: f"n{i}"} | ({ZONE: zone} if zone else {}))
        for i, zone in enumerate(zones)
    )


def plan(
    *gangs: Gang,
    of: Volumes,
    zones: tuple[str, ...] = ("a", "b"),
    cpu: int = 64,
    arguments: dict[str, object] | None = None,
    **snapshot: Any,
) -> Outcome:
    predicates = PluginConf("predicates", arguments=arguments or {})
    by = policies((("priority", "gang"), (predicates,)))
    return cycle(*gangs, nodes=nodes(*zones, cpu=cpu), by=by, volumes=of, **snapshot)


BOUND = claim("data", volume="pv")


@pytest.mark.parametrize(
    ("known", "place", "text", "why"),
    [
        ((BOUND, volume("pv")), {"n0"}, "", ""),
        # a volume that is not known is kube-scheduler's matter
        ((BOUND,), {"n0"}, "", ""),
        ((BOUND, volume("pv", terms=on(ZONE, "b"))), {"n1"}, "", ""),
        ((BOUND, volume("pv", terms=on(HOST, "n1"))), {"n1"}, "", ""),
        ((BOUND, volume("pv", zones=((ZONE, ("b", "c")),))), {"n1"}, "", ""),
        (
            (BOUND, volume("pv", zones=(("failure-domain.beta.kubernetes.io/zone", ("b",)),))),
            {"n1"},
            "",
            "",
        ),
        (
            (BOUND, volume("pv", terms=on(ZONE, "z"))),
            set(),
            volume_rules.OTHER_NODE,
            "volume pv is in zone z",
        ),
        (
            (BOUND, volume("pv", terms=on(HOST, "n7", "n8"))),
            set(),
            volume_rules.OTHER_NODE,
            "volume pv is on node n7 or n8",
        ),
        (
            (BOUND, volume("pv", terms=on("disk", "ssd"))),
            set(),
            volume_rules.OTHER_NODE,
            "volume pv cannot be reached from there",
        ),
        (
            (BOUND, volume("pv", zones=((ZONE, ("z",)),))),
            set(),
            volume_rules.OTHER_ZONE,
            "volume pv is in zone z",
        ),
        ((claim("other"),), set(), NOWHERE, "claim default/data does not exist"),
        (
            (claim("data", volume="pv", deleting=True),),
            set(),
            NOWHERE,
            "claim default/data is being deleted",
        ),
        (
            (claim("data", volume="pv", lost=True),),
            set(),
            NOWHERE,
            "volume pv of claim default/data does not exist any more",
        ),
        (
            (claim("data", volume="pv", bound=False), FAST),
            set(),
            NOWHERE,
            "claim default/data is not bound to volume pv yet",
        ),
        (
            (claim("data"), StorageClass("fast", DRIVER)),
            set(),
            NOWHERE,
            "claim default/data has no volume yet",
        ),
        ((claim("data", of=""),), set(), NOWHERE, "claim default/data has no volume yet"),
        (
            (claim("data"),),
            set(),
            NOWHERE,
            "StorageClass fast of claim default/data does not exist",
        ),
        # claims that wait
        ((claim("data"), FAST), {"n0"}, "", ""),
        ((claim("data", of=None), StorageClass("x", DRIVER, True, (), True)), {"n0"}, "", ""),
        ((claim("data", selected="n1"), FAST), {"n1"}, "", ""),
        (
            (claim("data", selected="n9"), FAST),
            set(),
            volume_rules.NO_VOLUME,
            "the volume of claim default/data is being made for node n9",
        ),
        (
            (
                claim("data"),
                StorageClass("fast", DRIVER, True, ((Requirement(ZONE, Operator.IN, ("b",)),),)),
            ),
            {"n1"},
            "",
            "",
        ),
        (
            (claim("data", of="local"), LOCAL),
            set(),
            volume_rules.NO_VOLUME,
            "1Gi asked by claim default/data of class local; no node has such a volume free",
        ),
        (
            (
                claim("data", of="local", gib=2),
                LOCAL,
                volume("small", storage_class="local", terms=on(HOST, "n0")),
                volume("large", storage_class="local", gib=3, terms=on(HOST, "n1")),
            ),
            {"n1"},
            "",
            "",
        ),
        (
            (
                claim("data", of="local", modes=("ReadWriteMany",)),
                LOCAL,
                volume("pv", storage_class="local"),
            ),
            set(),
            volume_rules.NO_VOLUME,
            "1Gi asked by claim default/data of class local; no node has such a volume free",
        ),
        (
            (
                claim(
                    "data",
                    of="local",
                    selector=LabelSelector((Requirement("disk", Operator.IN, ("ssd",)),)),
                ),
                LOCAL,
                volume("hdd", storage_class="local", terms=on(HOST, "n0")),
                volume("ssd", storage_class="local", labels={"disk": "ssd"}, terms=on(HOST, "n1")),
            ),
            {"n1"},
            "",
            "",
        ),
        # a volume that is kept for the claim
        (
            (
                claim("data", of="local"),
                LOCAL,
                volume("pv", storage_class="local", claim="default/data", terms=on(HOST, "n1")),
            ),
            {"n1"},
            "",
            "",
        ),
        # and one that is kept for another
        (
            (
                claim("data", of="local"),
                LOCAL,
                volume("pv", storage_class="local", claim="default/other"),
            ),
            set(),
            volume_rules.NO_VOLUME,
            "1Gi asked by claim default/data of class local; no node has such a volume free",
        ),
    ],
    ids=str,
)
def test_where_a_pod_with_a_claim_may_go(
    known: tuple[object, ...], place: set[str], text: str, why: str
) -> None:
    outcome = plan(gang("g", 1, pod_with("data")), of=volumes(storage(*known)))
    if place:
        assert set(outcome.nodes("g").values()) == place
        return
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.VOLUMES
    assert [count.text for count in refusal.nodes] == [text]
    assert outcome.text("g").endswith(f"; {why}")


@pytest.mark.parametrize(
    ("switch", "known"),
    [
        ("VolumeBinding", (claim("other"),)),
        ("VolumeBinding", (BOUND, volume("pv", terms=on(ZONE, "z")))),
        ("VolumeZone", (BOUND, volume("pv", zones=((ZONE, ("z",)),)))),
        ("NodeVolumeLimits", (BOUND, volume("pv"), limit("n0", 0), limit("n1", 0))),
    ],
)
@pytest.mark.parametrize("off", [False, "false"])
def test_each_rule_can_be_switched_off(switch: str, known: tuple[object, ...], off: object) -> None:
    of, one = volumes(storage(*known)), gang("g", 1, pod_with("data"))
    assert plan(one, of=of).refusal("g").cause is Cause.VOLUMES
    assert plan(one, of=of, arguments={f"predicate.{switch}Enable": off}).nodes("g")


def test_nothing_is_said_of_volumes_while_no_claim_is_known() -> None:
    assert plan(gang("g", 1, pod_with("data")), of=Volumes()).nodes("g") == {"g-0": "n0"}


def test_a_gang_takes_no_more_volumes_of_a_node_than_it_can_attach() -> None:
    known = storage(FAST, limit("n0", 3), limit("n1", 2))
    own = (ClaimSpec("fast", GIB),)
    whole = plan(gang("g", 5, pod_with(own=own)), of=volumes(known))
    assert sorted(whole.nodes("g").values()) == ["n0"] * 3 + ["n1"] * 2
    none = plan(gang("g", 6, pod_with(own=own)), of=volumes(known))
    assert not none.nodes("g")
    assert none.refusal("g").cause is Cause.VOLUMES


def test_a_refusal_has_the_numbers_of_the_best_node() -> None:
    claims = [claim(f"c{i}", volume=f"v{i}") for i in range(4)]
    each = [volume(f"v{i}") for i in range(4)]
    known = storage(*claims, *each, FAST, limit("n0", 16), limit("n1", 2))
    there = [PodVolumes(using(own=(ClaimSpec("fast", GIB),) * 13))]
    outcome = plan(gang("g", 1, pod_with("c0", "c1", "c2", "c3")), of=volumes(known, n0=there))
    assert outcome.text("g") == (
        f"0/2 nodes are available: 2 {volume_rules.TOO_MANY}; node n0: 3 of 16 volumes of "
        f"{DRIVER} free, no other has more; 4 asked"
    )


@pytest.mark.parametrize(
    ("there", "fits"),
    [
        ((), True),
        (("gone",), False),
        (("pv",), True),
        (("other",), True),
        (("gone", "other"), False),
    ],
    ids=["none", "of a pod that has gone", "its own", "of a pod that is there", "both"],
)
def test_a_volume_that_is_still_attached_holds_its_place(
    there: tuple[str, ...], fits: bool
) -> None:
    """The node attaches two, and a pod there uses one."""
    known = storage(
        *(BOUND, volume("pv"), claim("used", volume="other"), volume("other"), volume("gone")),
        *(limit("n0", 2), *(attached("n0", name) for name in there)),
    )
    of = volumes(known, n0=[PodVolumes(using("used"))])
    outcome = plan(gang("g", 1, pod_with("data")), of=of, zones=("a",))
    assert bool(outcome.nodes("g")) is fits
    if not fits:
        assert outcome.text("g").endswith(f"node n0: 0 of 2 volumes of {DRIVER} free; 1 asked")


def test_a_volume_that_is_attached_counts_once() -> None:
    known = storage(BOUND, volume("pv"), limit("n0", 1))
    of = volumes(known, n0=[PodVolumes(using("data"))])
    outcome = plan(gang("g", 3, pod_with("data")), of=of, zones=("a",))
    assert set(outcome.nodes("g").values()) == {"n0"}


def test_where_room_is_short_as_well_the_refusal_is_about_room() -> None:
    known = storage(BOUND, volume("pv"), limit("n0", 0))
    outcome = plan(gang("g", 1, pod_with("data", cpu=99_000)), of=volumes(known), zones=("a",))
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_RESOURCES


def test_no_local_volume_is_given_to_two_members() -> None:
    """A node with two volumes takes two members, however much room it has."""
    locals_ = [
        volume(f"pv{i}", storage_class="local", terms=on(HOST, f"n{i // 2}")) for i in range(4)
    ]
    known = storage(LOCAL, *locals_, claim("x", volume="y"))
    own = (ClaimSpec("local", GIB, ("ReadWriteOnce",)),)
    whole = plan(gang("g", 4, pod_with(own=own)), of=volumes(known))
    assert sorted(whole.nodes("g").values()) == ["n0", "n0", "n1", "n1"]
    assert not plan(gang("g", 5, pod_with(own=own)), of=volumes(known)).nodes("g")


def test_a_volume_that_a_reserved_place_will_take_is_taken() -> None:
    known = storage(LOCAL, volume("pv", storage_class="local"), claim("x", volume="y"))
    own = (ClaimSpec("local", GIB, ("ReadWriteOnce",)),)
    one = gang("g", 1, pod_with(own=own))
    assert plan(one, of=volumes(known)).nodes("g")
    reserved = [PodVolumes(using(own=own), bound=False)]
    assert not plan(one, of=volumes(known, n1=reserved)).nodes("g")


def test_members_that_share_a_claim_stay_where_its_volume_will_be() -> None:
    """The volume is made in the zone of the first member, for the driver says so of its nodes."""
    known = storage(FAST, claim("data"), *(limit(f"n{i}", 9, segments=[ZONE]) for i in range(4)))
    outcome = plan(
        gang("g", 8, pod_with("data", cpu=4000)), of=volumes(known), zones=tuple("abab"), cpu=16
    )
    assert sorted(outcome.nodes("g").values()) == ["n0"] * 4 + ["n2"] * 4
    more = gang("g", 9, pod_with("data", cpu=4000))
    assert not plan(more, of=volumes(known), zones=tuple("abab"), cpu=16).nodes("g")


def test_a_claim_for_one_pod_has_one_user() -> None:
    one = claim("data", volume="pv", modes=("ReadWriteOncePod",))
    known = storage(one, volume("pv"))
    assert plan(gang("g", 1, pod_with("data")), of=volumes(known)).nodes("g")
    for of, count in (
        (volumes(known), 2),
        (volumes(known, n1=[PodVolumes(using("data"))]), 1),
    ):
        outcome = plan(gang("g", count, pod_with("data")), of=of)
        assert outcome.text("g").endswith(
            "claim default/data is for one pod at a time (ReadWriteOncePod), "
            "and another one uses it"
        )


def _pool(key: str, host: str, *, gib: int, largest: int | None = None) -> StorageCapacity:
    selector = LabelSelector((Requirement(HOST, Operator.IN, (host,)),))
    most = None if largest is None else largest * GIB
    return StorageCapacity(key, "fast", selector, gib * GIB, most)


def test_volumes_of_a_gang_fit_what_storage_is_left_together() -> None:
    tells = CsiDriver(DRIVER, tells_capacity=True)
    pools = (_pool("k/0", "n0", gib=10), _pool("k/1", "n1", gib=100, largest=3))
    known = storage(FAST, tells, *pools, claim("x", volume="y"))
    own = (ClaimSpec("fast", 4 * GIB),)
    whole = plan(gang("g", 2, pod_with(own=own)), of=volumes(known))
    assert set(whole.nodes("g").values()) == {"n0"}
    none = plan(gang("g", 3, pod_with(own=own)), of=volumes(known))
    assert none.text("g").endswith("4Gi asked of class fast; at most 3Gi left on a node")


@pytest.mark.parametrize(
    ("reached", "exchange"),
    [(None, ANY_EQUAL), (on(ZONE, "a", "b"), ANY_EQUAL.within("volumes"))],
)
def test_where_volumes_matter_places_are_exchanged_among_equal_pods_only(
    reached: tuple[NodeTerm, ...] | None, exchange: Exchange
) -> None:
    known = storage(BOUND, volume("pv", terms=reached))
    [decided] = plan(gang("g", 1, pod_with("data")), of=volumes(known)).decisions("g")
    assert decided.placements[0].exchange == exchange


# --- as the ledger moves -------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("place", "pipeline", "evict", "undo")),
        st.integers(0, 3),
        st.integers(0, 5),
    ),
    max_size=12,
)
OWN = ClaimSpec("local", GIB, ("ReadWriteOnce",))
ASKS = (
    using("data"),
    using("shared"),
    using("one"),
    using(own=(OWN,)),
    using("shared", "data", own=(ClaimSpec("told", 2 * GIB),)),
)
THERE = nodes("a", "b", "a", "")
KNOWN = storage(
    *(FAST, LOCAL, StorageClass("told", "told.example.com", waits=True)),
    *(CsiDriver("told.example.com", tells_capacity=True), _pool("k/0", "n0", gib=5)),
    StorageCapacity("k/1", "told", LabelSelector(), 7 * GIB),
    *(claim("data", volume="pv"), volume("pv", zones=((ZONE, ("a",)),))),
    *(claim("shared"), claim("one", volume="pw", modes=("ReadWriteOncePod",)), volume("pw")),
    *(volume(f"l{i}", storage_class="local", terms=on(HOST, f"n{i // 2}")) for i in range(6)),
    *(volume("wide", storage_class="local"), limit("n0", 2, segments=[ZONE]), limit("n2", 3)),
)


class Books:
    """What is taken of volumes as a ledger stands."""

    def __init__(self, ledger: Ledger) -> None:
        self.reach = Reach(ledger.snapshot.table)
        self.books = VolumeBooks(ledger, self.reach)
        self.attached = Attachments(ledger, self.books.claims)

    def answers(self) -> list[object]:
        """All that is asked of them."""
        self.books.follow()
        self.attached.follow()
        rows = self.reach.every.nonzero()[0]
        found: list[object] = []
        for ask in ASKS:
            claims = self.books.claims(ask)
            found.append(self.books.has_volumes(ask, rows).tolist())
            for ahead in (False, True):
                found += [self.books.in_use(key, ahead=ahead) for key in ask.claims]
                for driver in self.attached.limited(claims):
                    found.append(self.attached.free(driver, rows, ahead=ahead)[0].tolist())
                    found.append(self.attached.asked(claims, driver, rows, ahead=ahead).tolist())
        return found


@examples(60)
@given(STEPS)
def test_a_roll_back_restores_every_number(steps: list[tuple[str, int, int]]) -> None:
    """Books that saw all of it answer as books that see only what stands."""
    pods = [
        make_pod(f"r{i}", node=NodeName(f"n{i}"), shape=make_shape(volumes=ask))
        for i, ask in enumerate(ASKS[:4])
    ]
    used = {f"n{i}": [PodVolumes(ask)] for i, ask in enumerate(ASKS[:4])}
    running = make_running(Runs(pod, row) for row, pod in enumerate(pods))
    ledger = Ledger(make_snapshot(nodes=THERE, running=running, volumes=volumes(KNOWN, **used)))
    gangs = [gang(f"g{i}", 3, make_shape(volumes=ask)) for i, ask in enumerate(ASKS)]
    books, starts = Books(ledger), [0]
    for verb, row, which in steps:
        if verb == "undo":
            ledger.undo_since(starts.pop() if len(starts) > 1 else 0)
            continue
        starts.append(len(ledger.journal))
        if verb == "evict":
            if pods[row].uid not in ledger.evicted:
                ledger.evict(row)
        else:
            give = ledger.place if verb == "place" else ledger.pipeline
            each = gangs[which % len(gangs)]
            give(each, each.waiting[which % 3], node=row)
        books.answers()
    assert books.answers() == Books(ledger).answers()


@examples(60)
@given(
    st.lists(st.tuples(st.sampled_from(range(len(ASKS))), st.integers(1, 4)), max_size=4),
    st.sampled_from(((), ("n0", 0), ("n2", 3), ("n1", 3))),
)
def test_no_plan_takes_more_than_there_is(
    asked: list[tuple[int, int]], held: tuple[str, int] | tuple[()]
) -> None:
    gangs = [
        gang(f"g{i}", count, pod_with(*_names(ASKS[at]), own=ASKS[at].own))
        for i, (at, count) in enumerate(asked)
    ]
    used = {held[0]: [PodVolumes(ASKS[held[1]], bound=False)]} if held else {}
    outcome = plan(*gangs, of=volumes(KNOWN, **used), zones=("a", "b", "a", ""))
    on_node: dict[str, list[VolumeAsk]] = {"n0": [], "n1": [], "n2": [], "n3": []}
    if held:
        on_node[held[0]].append(ASKS[held[1]])
    for i, (at, count) in enumerate(asked):
        there = outcome.nodes(f"g{i}")
        assert len(there) in (0, count)
        for node in there.values():
            on_node[node].append(ASKS[at])
    _check(on_node)


def _names(ask: VolumeAsk) -> list[str]:
    return [key.removeprefix("default/") for key in ask.claims]


def _check(on_node: dict[str, list[VolumeAsk]]) -> None:
    """What must hold of the volumes of pods by node, as one would count them by hand."""
    every = [ask for asks in on_node.values() for ask in asks]
    assert sum("default/one" in ask.claims for ask in every) <= 1
    assert not any("default/data" in ask.claims for ask in on_node["n1"])
    for node, most in (("n0", 2), ("n2", 3)):
        of_driver = {key for ask in on_node[node] for key in ask.claims}
        assert len(of_driver) <= most
    local = {node: sum(OWN in ask.own for ask in asks) for node, asks in on_node.items()}
    assert (
        sum(max(count - most, 0) for count, most in zip(local.values(), (2, 2, 2, 0), strict=True))
        <= 1
    )
    made = {
        node: sum(len(ask.own) - (OWN in ask.own) for ask in asks) for node, asks in on_node.items()
    }
    assert sum(made.values()) <= 3
    with_shared = [
        node for node, asks in on_node.items() if any("default/shared" in a.claims for a in asks)
    ]
    if "n0" in with_shared and "n1" in with_shared:
        raise AssertionError(f"claim shared was settled in zone a or for any node: {with_shared}")
