"""An independent checker of eviction certificates (:mod:`app.core.victims.certificate`).

Rules, sums, places and witnesses are worked out anew; what it states of the cluster is trusted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Value = dict[str, Any]
Units = Sequence[int]  # positions in the certificate, in the order of eviction
Violation = tuple[str, str]  # the place in the certificate, what is wrong there
Bound = tuple[str, str, str, int, int]  # as a witness names it: the places have, and need
_MOST_UNITS, _MOST_STEPS = 12, 20_000
_KINDS = {"bound", "exhaustive", "planner", "untried", "excess"}
_SYSTEM, _ALONE = {"system-cluster-critical", "system-node-critical"}, {"over-capability", "revoke"}
_SHARING, _WANTED, _EVEN = {"proportion", "capacity"}, {"bound", "preemptable"}, {"drf", "tdm"}
_FLAGS = {*_WANTED, "releasing", "foreign", "static", "daemonSet"}


def check(certificate: Any) -> list[Violation]:
    """What is wrong with a certificate; raises ``ValueError`` for what is none."""
    try:
        if (certificate["format"], certificate["version"]) != ("pumice.sh/eviction", 1):
            raise ValueError("its format is not pumice.sh/eviction, version 1")
        c = _prepared(certificate)
        gone = [at for at, unit in enumerate(c["units"]) if unit["witness"]]
        checks = (_units, _rules, _rule_of_reclaim, _sums, _places, _witnesses)
        return [found for each in checks for found in each(c, gone)]
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _prepared(c: Value) -> Value:
    """With what is asked for in all; members of one shape take also one of those of a node."""
    needs = Counter(place["shape"] for place in c["preemptor"]["places"])
    within = set((c["preemptor"].get("domain") or c)["nodes"])
    shapes = [s | {"takes": s["request"] | {f"#{at}": 1}} for at, s in enumerate(c["shapes"])]
    shapes = [s | {"nodes": [node for node in s["nodes"] if node in within]} for s in shapes]
    alone, own = c["action"] in _ALONE, c["queues"][c["preemptor"]["queue"]]["limit"]
    asked = Counter[str](dict.fromkeys(own if c["action"] == "over-capability" else (), 0))
    for at, count in needs.items():
        asked.update({r: n * count for r, n in shapes[at]["request"].items()})
    return c | {"shapes": shapes, "needs": needs, "asked": asked, "alone": alone}


def _pods(c: Value, units: Units) -> list[Value]:
    uids = dict.fromkeys(uid for at in units for uid in c["units"][at]["pods"])
    return [c["pods"][uid] for uid in uids]


def _rooms(c: Value, gone: Units) -> dict[str, Counter[str]]:
    """What the places may take of each node, once these units and all that terminate are gone."""
    rooms = {}
    for name, node in c["nodes"].items():
        rooms[name] = Counter({f"#{at}": shape["perNode"] for at, shape in enumerate(c["shapes"])})
        for sign, amounts in ((1, "allocatable"), (-1, "used"), (1, "releasing"), (-1, "pledged")):
            rooms[name].update({r: sign * n for r, n in node[amounts].items()})
    for pod in _pods(c, gone):
        if pod["node"] in rooms:
            rooms[pod["node"]].update(pod["request"])
    return rooms


def _line(c: Value, queue: str) -> list[str]:
    """The queues for which counts what is in ``queue``: itself, in a tree also those above it."""
    line = [queue]
    while c["tree"] and c["queues"][line[-1]]["parent"] not in ("", *line):
        line.append(c["queues"][line[-1]]["parent"])
    return line


def _held(c: Value, name: str, gone: Units) -> Counter[str]:
    """What the queue ``name`` holds without these units, and without the places."""
    held = Counter(c["queues"][name]["before"])
    for pod in _pods(c, gone):
        if pod["counted"] and name in _line(c, pod["queue"]):
            held.subtract(pod["request"])
    return held


def _lacks(gang: Value, gone: Iterable[Value], come: Sequence[Value] = ()) -> str:
    """What of its minimum is lacking when these members go and those come, in words."""
    has, minimum, gone = gang["has"], gang["minimum"], [pod for pod in gone if pod["counted"]]
    roles, members = Counter[str](has["roles"]), has["members"] - len(gone) + len(come)
    roles.subtract(member["role"] for member in gone)
    roles.update(member["role"] for member in come)
    lacking = [f"{members} of {minimum['members']} members"] * (members < minimum["members"])
    for role, least in minimum["roles"].items():
        lacking += [f"{roles[role]} of {least} of role {role}"] * (roles[role] < least)
    for policy, asked in minimum["policies"].items():
        groups = Counter[str](has["subGroups"].get(policy, {}))
        groups.subtract(member["subGroup"] for member in gone if member["policy"] == policy)
        groups.update(member["subGroup"] for member in come if member["policy"] == policy)
        least, whole = asked["least"], sum(count >= asked["size"] for count in groups.values())
        lacking += [f"{whole} of {least} sub-groups of {policy}"] * (whole < least)
    return ", ".join(lacking)


def _shown(amounts: Value) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items())) or "nothing"


def _units(c: Value, gone: Units) -> Iterator[Violation]:
    """Units are what they say, and the victims are those of the units that go."""
    evicted = Counter(uid for at in gone for uid in c["units"][at]["pods"])
    for uid in (evicted - Counter(c["victims"])) | (Counter(c["victims"]) - evicted):
        yield f"pods[{uid}]", "is no victim of just one unit that goes"
    for at, unit in enumerate(c["units"]):
        pods = _pods(c, [at])
        gang = c["gangs"][pods[0]["gang"]]
        size = gang["running"] if unit["kind"] == "gang" else 1
        kinds = ("single",) if gang["single"] else ("surplus", "gang")
        if (len(pods), len({p["gang"] for p in pods})) != (size, 1) or unit["kind"] not in kinds:
            yield f"units[{at}]", f"of {len(pods)} pods is no {unit['kind']}"


def _rules(c: Value, gone: Units) -> Iterator[Violation]:
    """What forbids that exactly these units go, in this order."""
    for n, at in enumerate(gone):
        for pod in _pods(c, [at]):
            where = f"pods[{pod['namespace']}/{pod['name']}]"
            yield from ((where, text) for text in _forbids(c, pod, before=gone[:n]))
    parts = [at for at in gone if c["units"][at]["kind"] == "surplus"]
    for key in {pod["gang"] for pod in _pods(c, parts)} - {c["preemptor"]["group"]}:
        gang, lost = c["gangs"][key], [pod for pod in _pods(c, gone) if pod["gang"] == key]
        if lacks := _lacks(gang, lost) or gang["endsWhole"] * "it must end whole":
            yield f"gangs[{key}]", f"is left in part: {lacks}"
    for budget in c["budgets"]:
        covered = sum(uid in budget["covers"] for at in gone for uid in c["units"][at]["pods"])
        if covered > budget["allowed"]:
            text = f"allows {budget['allowed']} evictions, and covers {covered} victims"
            yield f"budgets[{budget['name']}]", text


def _forbids(c: Value, pod: Value, *, before: Units) -> Iterator[str]:
    preemptor, queue, rules = c["preemptor"], pod["queue"], pod["rule"].split("+")
    yield from (f"{flag} is {pod[flag]}" for flag in _FLAGS if pod[flag] != (flag in _WANTED))
    if pod["namespace"] == "kube-system" or pod["priorityClass"] in _SYSTEM:
        yield "the cluster itself depends on it"
    if not all(rules) or c["time"] < pod["mayGoFrom"]:
        yield f"no rule allows it before {pod['mayGoFrom']}, and it is {c['time']}"
    if c["action"].endswith("reclaim"):
        held, about = _held(c, queue, before), c["queues"][queue]
        if queue == preemptor["queue"] or not about["reclaimable"]:
            yield f"is in queue {queue}, of which nothing is reclaimed"
        most = about["deserved"]
        above = [r for r in pod["request"] if r != "pods" and held[r] > most.get(r, 0)]
        if not (above or _SHARING.isdisjoint(rules)):
            yield f"queue {queue} holds no more than it deserves: {_shown(held)} of {_shown(most)}"
        return
    if preemptor["queue"] not in (_line(c, queue) if c["alone"] else (queue,)):
        yield f"is in queue {queue}, not in {preemptor['queue']}"
    priority, other = c["gangs"][pod["gang"]]["priority"], preemptor["priority"]
    if pod["gang"] == preemptor["group"]:
        priority = pod["priority"]
        other = min((place["priority"] for place in preemptor["places"]), default=priority)
    if priority >= other + bool(_EVEN & {*rules}) and not (c["alone"] or c["action"] == "shuffle"):
        yield f"priority {priority} is not lower than {other} of the preemptor"


def _rule_of_reclaim(c: Value, gone: Units) -> Iterator[Violation]:
    """The queue of the preemptor holds no more than it deserves afterwards."""
    rules = {rule for pod in _pods(c, gone) for rule in pod["rule"].split("+")}
    if not c["action"].endswith("reclaim") or rules.isdisjoint(_SHARING):
        return
    line = _line(c, c["preemptor"]["queue"])[: 1 + c["ancestorLevel"]]
    asked, enough = c["asked"].keys() - {"pods"}, any if "capacity" in rules else all
    afters = [(_held(c, name, gone) + c["asked"], c["queues"][name]["deserved"]) for name in line]
    if not any(enough(now[r] <= most.get(r, 0) for r in asked) for now, most in afters):
        text = "; ".join(f"{_shown(now)} of {_shown(most)}" for now, most in afters)
        yield "preemptor", f"its queue holds more than it deserves afterwards: {text}"


def _cost(c: Value, gone: Units) -> list[int]:
    """Gangs ended, the highest priority, lost work, pods: the first that differs decides."""
    pods, ended = _pods(c, gone), sum(c["units"][at]["kind"] == "gang" for at in gone)
    of_pods = [max(pod["priority"], c["gangs"][pod["gang"]]["priority"]) for pod in pods]
    return [ended, max(of_pods, default=-(1 << 31)), sum(p["lostWork"] for p in pods), len(pods)]


def _sums(c: Value, gone: Units) -> Iterator[Violation]:
    cost = dict(zip(("gangs", "priority", "lostWork", "pods"), _cost(c, gone), strict=True))
    if cost != c["cost"]:
        yield "cost", f"is {_shown(cost)}, not {_shown(c['cost'])}"
    for uid, pod in c["pods"].items():
        share = max([n / c["total"].get(r, 1) for r, n in pod["request"].items()], default=0.0)
        work = share * min(max(c["time"] - pod["saved"], 0), 1e8) * 1e6
        if abs(work - pod["lostWork"]) > 1:
            yield f"pods[{uid}]", f"loses work {work:.0f}, not {pod['lostWork']}"
    pods, mine = _pods(c, gone), _line(c, c["preemptor"]["queue"])
    for key, gang in c["gangs"].items():
        left = gang["has"]["members"] - sum(p["counted"] for p in pods if p["gang"] == key)
        if left != gang["left"]:
            yield f"gangs[{key}]", f"has {left} members left, not {gang['left']}"
    for name, queue in c["queues"].items():
        after, stated, limit = _held(c, name, gone), Counter(queue["after"]), queue["limit"]
        after.update(c["asked"] if name in mine else {})
        text = f"holds {_shown(after)} afterwards, "
        if after != stated:
            yield f"queues[{name}]", f"{text}not {_shown(stated)}"
        if name in mine and any(after[r] > limit.get(r, after[r]) for r in c["asked"]):
            yield f"queues[{name}]", f"{text}more than its limit {_shown(limit)}"


def _places(c: Value, gone: Units) -> Iterator[Violation]:
    """Nodes have room for all places, and these are what the minimum lacks."""
    mine, rooms = c["preemptor"], _rooms(c, gone)
    for place in mine["places"]:
        rooms[place["node"]].subtract(c["shapes"][place["shape"]]["takes"])
        if place["node"] not in c["shapes"][place["shape"]]["nodes"]:
            yield f"places[{place['name']}]", f"may not be on {place['node']}"
    for node in {place["node"] for place in mine["places"]}:
        if short := {r: -amount for r, amount in rooms[node].items() if amount < 0}:
            yield f"nodes[{node}]", f"lacks room for its places: {_shown(short)}"
    lost = [pod for pod in _pods(c, gone) if pod["gang"] == mine["group"]]
    if lacks := _lacks(mine, lost, mine["places"]):
        yield "preemptor", f"is not whole: {lacks}"
    for at, place in enumerate(mine["places"]):
        if not _lacks(mine, lost, mine["places"][:at] + mine["places"][at + 1 :]):
            yield f"places[{place['name']}]", "is beyond the minimum"


def _bounds(c: Value, gone: Units) -> Iterator[Bound]:
    """How much there is at most of all that the places need, with exactly these units gone."""
    rooms, asked, needs, usable = _rooms(c, gone), c["asked"], c["needs"], set[str]()
    for at, shape in enumerate(c["shapes"]):
        nodes, takes = shape["nodes"], shape["takes"].items()
        fits = {name: max(min(rooms[name][r] // n for r, n in takes if n), 0) for name in nodes}
        usable.update(name for name, count in fits.items() if count)
        yield ("members", str(at), "", shape["elsewhere"] + sum(fits.values()), needs[at])
    for r, need in asked.items():
        have = c["elsewhere"].get(r, 0) + sum(max(rooms[name][r], 0) for name in usable)
        yield ("sum", "", r, have, need)
    for name in _line(c, c["preemptor"]["queue"]):
        held, limit = _held(c, name, gone), c["queues"][name]["limit"]
        for r in asked.keys() & limit.keys():
            yield ("queue", name, r, limit[r] - held[r], asked[r])


def _have_room(c: Value, gone: Units) -> bool:
    """Whether all places could be given; True also where that takes too long to find out."""
    if any(have < need for *_, have, need in _bounds(c, gone)):
        return False
    rooms, steps, needs = _rooms(c, gone), iter(range(_MOST_STEPS)), c["needs"]
    wanted = [at for at, n in needs.items() for _ in range(n - c["shapes"][at]["elsewhere"])]

    def packs(n: int, first: int) -> bool:
        if n == len(wanted) or next(steps, None) is None:
            return True
        nodes, takes = c["shapes"][wanted[n]]["nodes"], c["shapes"][wanted[n]]["takes"]
        first = first if n and wanted[n - 1] == wanted[n] else 0  # equal members in order
        for row in range(first, len(nodes)):
            room = rooms[nodes[row]]
            if all(room[r] >= amount for r, amount in takes.items()):
                room.subtract(takes)
                if packs(n + 1, row):
                    return True
                room.update(takes)
        return False

    return len(needs) == 1 or packs(0, 0)


def _cheaper(c: Value, gone: Units) -> Iterator[Units]:
    """Sets of units that might have gone instead, and cost less."""
    cost = _cost(c, gone)
    if len(c["units"]) > _MOST_UNITS:
        raise ValueError(f"not more than {_MOST_UNITS} units can be tried in all ways")
    for number in range(1 << len(c["units"])):
        units = [at for at in range(len(c["units"])) if number >> at & 1]
        forbidden = any(set(each) <= set(units) for each in c["forbidden"])
        if not forbidden and _cost(c, units) < cost and _have_room(c, units):
            yield from () if any(_rules(c, units)) else (units,)


def _witnesses(c: Value, gone: Units) -> Iterator[Violation]:
    """No unit that goes can be spared; the planner's word and what was not tried are let pass."""
    kinds = {at: c["units"][at]["witness"]["kind"] for at in gone}
    cheaper = list(_cheaper(c, gone)) if "exhaustive" in kinds.values() else []
    for at, kind in kinds.items():
        witness, others, text = c["units"][at]["witness"], [o for o in gone if o != at], ""
        if (kind == "excess") != (c["action"] in {"shuffle", "revoke"}) or kind not in _KINDS:
            text = f"{kind} is no witness of {c['action']}"
        elif kind == "exhaustive" and (spared := [units for units in cheaper if at not in units]):
            text = f"units {spared[0]} cost less"
        elif kind == "excess":
            node, r, most = (witness[name] for name in ("node", "resource", "most"))
            names = (r, f"kubernetes.io/batch-{r}") if "beyond" in witness else (r,)
            has, room = c["nodes"][node]["allocatable"], _rooms(c, others)[node]
            taken = sum(has.get(each, 0) - room[each] for each in names) + witness.get("beyond", 0)
            if taken <= most or all(pod["node"] != node for pod in _pods(c, [at])):
                text = f"{r} {taken} is taken of {node}"
        elif kind == "bound":
            stated = tuple(witness[name] for name in ("bound", "of", "resource", "have", "need"))
            if stated not in (bounds := [*_bounds(c, others)]) or stated[3] >= stated[4]:
                text = f"it states {stated}, and the bounds are {bounds}"
        if text:
            yield f"units[{at}]", f"is not proven to be needed: {text}"
