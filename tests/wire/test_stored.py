"""Values of the model as bytes: what is read is what was written, and nothing else is made."""

import zlib
from collections import Counter
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest

from app.model.exchange import ANY_EQUAL, Exchange
from app.model.ids import GroupKey
from app.model.parts import Part, SubGroup
from app.model.plan import Plan
from app.model.reason import Cause, Refusal, Shortfall
from app.model.shape import LabelSelector, Operator, Requirement
from app.wire.errors import DecodeError
from app.wire.stored import digest, packed, unpacked
from tests.builders import make_shape

REFUSAL = Refusal(Cause.NOT_ENOUGH_RESOURCES, shortfalls=(Shortfall("cpu", 4000, 2000),))


def again(value: Any) -> Any:
    return unpacked(packed(value))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**62),
        0.1,
        "",
        b"\0",
        (),
        (1, "a", (2.5, None)),
        [1, [2]],
        {},
        {"a": 1, ("b", 2): {"c": [()]}},
        frozenset({"a"}),
        Cause.QUEUE_QUOTA,
        Operator.IN,
        SubGroup("p", "v"),
        {Part("w"): 2},
        REFUSAL,
        Exchange(frozenset({"domain r1"})),
        LabelSelector((Requirement("k", Operator.GREATER, ("5",)),)),
        make_shape(cpu=1000),
    ],
    ids=repr,
)
def test_what_is_read_is_what_was_written(value: Any) -> None:
    found = again(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("dtype", [np.int64, np.intp, np.int8, np.float64, np.bool_])
def test_arrays_keep_their_numbers_shape_and_order(dtype: Any) -> None:
    for array in (np.arange(6).reshape(2, 3).astype(dtype), np.zeros(0, dtype=dtype)):
        for laid_out in (array, np.asfortranarray(array)):
            found = again(laid_out)
            assert found.tolist() == array.tolist()
            assert found.dtype == array.dtype
            assert found.flags.f_contiguous == laid_out.flags.f_contiguous
            assert not found.flags.writeable


def test_counters_stay_counters_and_other_mappings_become_dictionaries() -> None:
    assert again(Counter({"a": 2}))["none"] == 0
    assert type(again(MappingProxyType({"a": 2}))) is dict


def test_what_is_shared_is_stored_once_and_shared_again() -> None:
    one, other = again((REFUSAL, REFUSAL))
    assert one is other
    many = packed(tuple(REFUSAL for _ in range(1000)))
    assert len(many) < 2 * len(packed((REFUSAL,)))


def test_the_order_of_a_mapping_is_kept() -> None:
    plan = Plan(1, refused={GroupKey("n/b"): REFUSAL, GroupKey("n/a"): REFUSAL})
    assert list(again(plan).refused) == ["n/b", "n/a"]


def test_equal_values_have_one_text_however_they_are_shared() -> None:
    twin = Refusal(Cause.NOT_ENOUGH_RESOURCES, shortfalls=(Shortfall("cpu", 4000, 2000),))
    assert digest((REFUSAL, REFUSAL)) == digest((REFUSAL, twin))
    assert digest({"a": 1, "b": frozenset("xy")}) == digest({"b": frozenset("yx"), "a": 1})
    assert digest(np.arange(2)) != digest(np.arange(3))
    assert digest(Plan(1)) != digest(Plan(2))


@pytest.mark.parametrize("value", [object(), len, np.zeros(1, dtype=np.complex128), ValueError()])
def test_what_is_no_value_of_the_model_is_not_written(value: Any) -> None:
    with pytest.raises(TypeError, match="no value of the model"):
        packed(value)


def written(root: Any, objects: Any, *, version: int = 1) -> bytes:
    told = msgspec.msgpack.encode([version, root, objects])
    return b"pumice-record\n" + zlib.compress(told)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a file of pumice record"),
        (b"pumice-record\nno zip", "the file is damaged"),
        (packed(REFUSAL)[:-8], "the file is damaged"),
        (written(1, [], version=2), "of version 2"),
        (written([0], []), "cannot be read"),
        (written([-1], [["t"]]), "cannot be read"),
        (written([0], [["t", [0]]]), "cannot be read"),
        (written([0], [["x"]]), "cannot be read"),
        (written([0], [["o", "os.system"]]), "cannot be read"),
        (written([0], [["o", "reason.Cause"]]), "cannot be read"),
        (written([0], [["n", "reason.Refusal"]]), "cannot be read"),
        (written([0], [["e", "reason.Cause", "SUCH"]]), "cannot be read"),
        (written([0], [["e", "reason.Refusal", "SUCH"]]), "cannot be read"),
        (written([0], [["o", "reason.Shortfall", "resource", "cpu"]]), "has no asked"),
        (written([0], [["o", "exchange.Exchange", "such", 1]]), "has a such"),
        (written([0], [["a", "object", "C", b"12345678", 1]]), "cannot be read"),
        (written([0], [["a", "int64", "C", b"1", 1]]), "cannot be read"),
        (written([0], [["d", 1]]), "cannot be read"),
        (written([0], [["d", [1], 1], ["l"]]), "cannot be read"),
        (written([1], [["l"], ["d", [0], 1]]), "cannot be read"),
        (written([0], [[]]), "cannot be read"),
    ],
)
def test_another_file_is_refused_with_a_word_on_why(content: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        unpacked(content)


def test_a_field_that_came_later_has_its_default() -> None:
    assert unpacked(written([0], [["o", "exchange.Exchange"]])) == Exchange()
    assert Exchange() == ANY_EQUAL
