"""Which pods of a group do not do their work, though they have nodes."""

from app.cache.gangs.groups import Group


def trouble_of(group: Group) -> str:
    """How many members are in trouble and why the first of them is, by name; empty: none are."""
    pods = [member.pod for member in group.members.values() if member.pod.trouble]
    if not pods:
        return ""
    first = min(pods, key=lambda pod: pod.name)
    does = "does" if len(pods) == 1 else "do"
    count = f"{len(pods)} of {len(group.members)} pods"
    return f"{count} {does} not work: {first.name}: {first.trouble}"
