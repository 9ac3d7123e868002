"""What every test that evicts says of a decision: its certificate is accepted."""

import json

from app.cli.certificates import check
from app.model.eviction import EvictionPlan


def assert_certified(plan: EvictionPlan) -> None:
    """The independent checker accepts the certificate, and that is of this decision."""
    if not plan.victims:
        assert not plan.certificate
        return
    certificate = json.loads(json.dumps(plan.certificate))
    assert check(certificate) == []
    assert certificate["action"] == plan.action
    assert certificate["preemptor"]["admits"] == plan.admits
    assert certificate["victims"] == [victim.uid for victim in plan.victims]
    if not plan.preemptor:
        return  # which pods come is not known, and they have no places
    assert certificate["preemptor"]["group"] == plan.preemptor
    places = sorted((place.task.name, place.node) for place in plan.places)
    assert places == sorted((e["name"], e["node"]) for e in certificate["preemptor"]["places"])
