"""What can be read of any object."""

from app.wire import unstructured
from app.wire.unstructured import Object


def _made(at: str, version: str) -> Object:
    return {"metadata": {"creationTimestamp": at, "resourceVersion": version}}


def test_objects_of_one_second_are_as_old_as_their_versions_say() -> None:
    first, second = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    made = [_made(first, "9"), _made(first, "10"), _made(second, "8"), _made(second, "100")]
    assert sorted([made[2], made[1], made[3], made[0]], key=unstructured.age) == made
