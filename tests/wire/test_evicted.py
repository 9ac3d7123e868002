"""What a pod is told that Pumice evicts."""

import pytest

from app.wire import evicted
from app.wire.evicted import EVICTED


def test_what_is_written_is_what_is_read() -> None:
    written = evicted.annotation("preempt for default/high", uid="one")
    assert written["metadata"]["uid"] == "one"
    said = written["metadata"]["annotations"]
    assert said == {EVICTED: "preempt for default/high [one]"}
    assert evicted.read(said, uid="one") == "preempt for default/high"


@pytest.mark.parametrize("said", ["", "preempt", "preempt [another]", "[one]", "preempt [one] x"])
def test_what_does_not_name_the_pod_says_nothing(said: str) -> None:
    assert evicted.read({EVICTED: said}, uid="one") == ""
    assert evicted.read({}, uid="one") == ""
