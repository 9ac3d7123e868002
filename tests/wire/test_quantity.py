"""Quantities against exact decimal arithmetic."""

from decimal import ROUND_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.amounts import UNLIMITED
from app.wire import quantity
from app.wire.errors import DecodeError

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

numbers = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{0,12})?", fullmatch=True),
    st.from_regex(r"[+-]?\.[0-9]{1,12}", fullmatch=True),
)


def exact(value: Decimal, *, milli: bool) -> int:
    scaled = value * 1000 if milli else value
    whole = int(scaled.to_integral_value(rounding=ROUND_UP))
    return max(-UNLIMITED, min(UNLIMITED, whole))


@given(numbers, st.sampled_from(sorted(DECIMAL)), st.booleans())
def test_decimal_suffixes_are_powers_of_ten_rounded_away_from_zero(
    number: str, suffix: str, milli: bool
) -> None:
    value = Decimal(number).scaleb(DECIMAL[suffix])
    assert quantity.parse(number + suffix, milli=milli) == exact(value, milli=milli)


@given(numbers, st.sampled_from(sorted(BINARY)), st.booleans())
def test_binary_suffixes_are_powers_of_two(number: str, suffix: str, milli: bool) -> None:
    value = Decimal(number) * BINARY[suffix]
    assert quantity.parse(number + suffix, milli=milli) == exact(value, milli=milli)


@given(numbers, st.sampled_from("eE"), st.integers(-40, 40), st.booleans())
def test_exponents_shift_the_point(number: str, sign: str, power: int, milli: bool) -> None:
    value = Decimal(number).scaleb(power)
    assert quantity.parse(f"{number}{sign}{power}", milli=milli) == exact(value, milli=milli)


@given(st.floats(min_value=-1e12, max_value=1e12) | st.integers(-(10**15), 10**15))
def test_numbers_without_quotes_are_quantities(number: float) -> None:
    assert quantity.parse(number) == exact(Decimal(repr(number)), milli=False)


@given(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu", "requests.cpu"]), st.data())
def test_amounts_survive_being_written_and_read(resource: str, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, 2**50) | st.integers(0, 2**20).map(lambda n: n * 2**20))
    assert quantity.amount(resource, quantity.text(resource, value)) == value


@pytest.mark.parametrize(
    ("resource", "text", "value"),
    [
        ("cpu", "2", 2000),
        ("cpu", "1500m", 1500),
        ("cpu", "100u", 1),
        ("cpu", "0.1", 100),
        ("cpu", "1e3", 1_000_000),
        ("memory", "512Mi", 512 << 20),
        ("memory", "128974848", 128974848),
        ("memory", "129e6", 129_000_000),
        ("memory", "123.5Mi", 129_499_136),
        ("memory", "1E", 10**18),
        ("memory", "1E1", 10),
        ("memory", "100m", 1),
        ("memory", "-1.5", -2),
        ("nvidia.com/gpu", "8", 8),
        ("requests.cpu", "2", 2000),
        ("limits.cpu", "2", 2000),
        ("requests.nvidia.com/gpu", "2", 2),
        ("memory", "9Ei", UNLIMITED),
        ("memory", "1e1000000000", UNLIMITED),
        ("memory", "0e1000000000", 0),
        ("memory", "1e-1000000000", 1),
        ("memory", "9" * 60 + "Ei", UNLIMITED),
    ],
)
def test_known_texts_have_their_value(resource: str, text: str, value: int) -> None:
    assert quantity.amount(resource, text) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "1x", "1 Gi", "Gi", ".", "+", "-", "1.2.3", "1ki", "1Mb", "0x10", "1e", "1e1.5",
     "1_000", "٣", "NaN", "inf", "1" * 65, float("inf"), float("nan")],
)  # fmt: skip
def test_other_texts_are_refused(text: quantity.Quantity) -> None:
    with pytest.raises(quantity.QuantityError, match="is not a quantity"):
        quantity.parse(text)


def test_an_error_in_a_resource_list_names_the_field() -> None:
    with pytest.raises(DecodeError) as caught:
        quantity.read({"cpu": "1", "memory": "1x"}, "status.allocatable")
    assert str(caught.value) == 'status.allocatable.memory: "1x" is not a quantity'


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("cpu", 0, "0"),
        ("memory", 512 << 20, "512Mi"),
        ("memory", 1 << 30, "1Gi"),
        ("memory", 1500, "1500"),
        ("memory", 0, "0"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("pods", 110, "110"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amounts_are_written_as_one_would(resource: str, value: int, text: str) -> None:
    assert quantity.text(resource, value) == text
    assert quantity.texts(((resource, value),)) == {resource: text}
