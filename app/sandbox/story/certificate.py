"""The certificate of an eviction in plain words (:mod:`app.core.victims.certificate`)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from app.kit.quantities import amount_text

Certificate = dict[str, Any]

_KINDS = {
    "surplus": "beyond the minimum of its job",
    "single": "of use by itself",
    "gang": "of a gang that goes whole",
}
_NEEDED = {
    "bound": "were it to stay, there would be too little room or share",
    "exhaustive": "every cheaper choice was tried, and none has room",
    "planner": "the planner found no places without it",
    "untried": "the search ended before the planner was asked without it",
}


def explained(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What the certificate says, a title and a sentence each."""
    preemptor, queues = certificate["preemptor"], certificate["queues"]
    places = preemptor["places"]
    own = queues[preemptor["queue"]]
    yield (
        "who asks",
        f"a gang of {len(places)} in queue {preemptor['queue']}, which holds "
        f"{_cpu(own['before'])} and deserves {_cpu(own['deserved'])}",
    )
    pods = [certificate["pods"][uid] for uid in certificate["victims"]]
    for name in dict.fromkeys(pod["queue"] for pod in pods):
        held = queues[name]
        yield (
            "from whom",
            f"queue {name}, which holds {_cpu(held['before'])}, deserves {_cpu(held['deserved'])} "
            f"and keeps {_cpu(held['after'])}",
        )
    going = [unit for unit in certificate["units"] if unit["witness"]]
    kinds = Counter(unit["kind"] for unit in going for _ in unit["pods"])
    told = ", ".join(f"{count} {_KINDS[kind]}" for kind, count in kinds.items())
    yield "who goes", f"{len(pods)} pods: {told}; {certificate['cost']['gangs']} gangs end"
    nodes = sorted({place["node"] for place in places})
    yield (
        "what for",
        f"all {len(places)} members have places then, on {', '.join(nodes)}; else no pod would go",
    )
    for kind, count in Counter(unit["witness"]["kind"] for unit in going).items():
        yield "why each", f"{count} of {len(going)}: {_NEEDED[kind]}"


def _cpu(amounts: Mapping[str, int]) -> str:
    return f"cpu {amount_text('cpu', amounts.get('cpu', 0))}"
