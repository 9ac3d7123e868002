"""Victims and gangs: keyword defaults, so a test states only what it is about."""

from collections import Counter
from typing import Any

from app.core.protection.victim import Victim, VictimGang
from app.model.ids import NodeName, PodUid, group_key
from app.model.parts import Part

GANG = group_key("default", "g")


def make_victim(name: str = "v", **fields: Any) -> Victim:
    """A foreign pod that runs."""
    defaults: dict[str, Any] = {
        "uid": PodUid(f"uid-{name}"),
        "namespace": "default",
        "labels": {},
        "node": NodeName("n1"),
        "created": 0.0,
        "request": (),
    }
    return Victim(name=name, **(defaults | fields))


def make_member(name: str = "v", *, role: str = "", **fields: Any) -> Victim:
    """A member of the gang ``g`` that is there."""
    return make_victim(name, **({"gang": GANG, "part": Part(role), "there": True} | fields))


def make_victim_gang(*members: Victim, minimum: int, **fields: Any) -> VictimGang:
    """The gang of these, of which those count that are there."""
    parts = Counter(member.part for member in members if member.there)
    defaults: dict[str, Any] = {
        "members": parts,
        "finished": 0,
        "role_minimum": {},
        "sub_groups": (),
    }
    return VictimGang(min_member=minimum, **(defaults | fields))
