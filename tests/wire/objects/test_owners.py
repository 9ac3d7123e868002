"""What owners of pods say of their pods."""

import pytest

from app.model import pod
from app.wire.errors import DecodeError
from app.wire.kinds import GATHERING
from app.wire.objects.owners import MIN_MEMBER, decode_owner
from tests.wire.manifests import encode, metadata


@pytest.mark.parametrize(
    ("annotations", "least"),
    [
        (None, 1),
        ({}, 1),
        ({MIN_MEMBER: "3"}, 3),
        ({MIN_MEMBER: "1"}, 1),
        ({MIN_MEMBER: "0"}, 1),
        ({MIN_MEMBER: "-3"}, 1),
        ({MIN_MEMBER: "three"}, 1),
        ({MIN_MEMBER: ""}, 1),
        ({MIN_MEMBER: "+2"}, 2),
        ({MIN_MEMBER: "2147483647"}, 2147483647),
        # What Go does not read counts for nothing, and what a minMember cannot be.
        ({MIN_MEMBER: " 2 "}, 1),
        ({MIN_MEMBER: "1_0"}, 1),
        ({MIN_MEMBER: "٣"}, 1),
        ({MIN_MEMBER: "2147483648"}, 1),
    ],
)
def test_so_many_pods_belong_together(annotations: dict[str, str] | None, least: int) -> None:
    found = decode_owner(encode({"metadata": metadata("web", annotations=annotations)}))
    assert (found.uid, found.least) == ("uid-web", least)


def test_an_owner_without_metadata_is_an_error() -> None:
    with pytest.raises(DecodeError, match="metadata"):
        decode_owner(b"{}")


def test_the_kinds_that_may_gather_are_those_that_can_be_read() -> None:
    assert GATHERING.keys() == pod.GATHERING
