"""CEL expressions about devices."""

import subprocess
import sys

import pytest

from app.model.device_slices import Capacity, DeviceId, PoolDevice, Reach, Version
from app.wire import device_selectors
from app.wire.device_selectors import holds, parse_version
from tests.device_claims import device

GIB = 1 << 30
A100 = device(
    "a",
    attributes=(
        ("type", "gpu"),
        ("index", 3),
        ("mig", True),
        ("driverVersion", Version(1, 30, 2)),
        ("example.com/rack", "r1"),
    ),
    capacity=(("memory", Capacity(80 * GIB)), ("cpu", Capacity(1_500))),
)
OWN = 'device.attributes["gpu.example.com"]'
SIZE = 'device.capacity["gpu.example.com"]'


@pytest.mark.parametrize(
    ("expression", "is_so"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.driver == "other.example.com"', False),
        (f'{OWN}.type == "gpu" && {OWN}.index > 2', True),
        (f"{OWN}.mig", True),
        (f"!{OWN}.mig", False),
        (f'{OWN}.type.startsWith("g") && {OWN}.type.matches("^g.u$")', True),
        (f'{OWN}.type.lowerAscii() in ["gpu", "tpu"]', True),
        ('device.attributes["example.com"].rack == "r1"', True),
        (f'{SIZE}.memory.compareTo(quantity("80Gi")) == 0', True),
        (f'{SIZE}.memory.isGreaterThan(quantity("80Gi"))', False),
        (f'{SIZE}.memory.isLessThan(quantity("1Ti"))', True),
        (f'{SIZE}.cpu.compareTo(quantity("1500m")) == 0', True),
        (f'{OWN}.driverVersion.isGreaterThan(semver("1.30.1"))', True),
        (f'{OWN}.driverVersion.compareTo(semver("1.30.2")) == 0', True),
        (f'{OWN}.driverVersion.isLessThan(semver("1.31.0-rc.1"))', True),
        (f"{OWN}.driverVersion.minor() == 30", True),
        ("device.allowMultipleAllocations", False),
        ('"example.com" in device.attributes', True),
        ('"none.example.com" in device.attributes', False),
        ('has(device.attributes["none.example.com"].rack)', False),
        (f'has({OWN}.none) && {OWN}.none == "x"', False),
        (f"{OWN}.none == 1", False),
        (f'{OWN}.index == "3"', False),
        ("1", False),
        ("1 / 0 == 1", False),
        ("1 % 0 == 1", False),
        ("[1][5] == 1", False),
        ("[1].map(x, x / 0).size() > 0", False),
        (f"{OWN}.index / 0 == 1", False),
        (f"{OWN}.index + 9223372036854775807 > 0", False),
        (f'{OWN}.index.lowerAscii() == "x"', False),
        ("1 / 0 == 1 || device.driver != 'x'", True),
    ],
)
def test_an_expression_holds_of_a_device_or_not(expression: str, is_so: bool) -> None:
    assert holds(expression, A100) is is_so


@pytest.mark.parametrize(
    "expression",
    [
        f'{OWN}.?type.orValue("") == "x"',
        'cel.bind(d, device.driver, d == "x")',
        "device.magic(3)",
        "no expression at all (",
        "device.driver == unknown",
    ],
)
def test_what_is_not_understood_is_left_to_kube_scheduler(expression: str) -> None:
    assert holds(expression, A100)


def test_a_device_with_attributes_that_are_not_readable_is_left_to_kube_scheduler() -> None:
    id_ = DeviceId("gpu.example.com", "n", "a")
    assert holds(f"{OWN}.none == 1", PoolDevice(id_, Reach(), opaque=True))


@pytest.mark.parametrize("expression", ["1 / 0 == 1", "[1][5] == 1", f"{OWN}.none == 1"])
def test_an_expression_that_fails_for_such_a_device_is_left_to_kube_scheduler(
    expression: str,
) -> None:
    assert holds(expression, PoolDevice(A100.id, Reach(), opaque=True))


@pytest.mark.parametrize("step", ["_compiled", "_context"])
def test_an_expression_that_fails_in_a_way_not_foreseen_is_left_to_kube_scheduler(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise AssertionError("not foreseen")

    monkeypatch.setattr(device_selectors, step, fails)
    assert holds("device.driver == 'x'", A100)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("1.2.3", "1.2.4"),
        ("1.9.0", "1.10.0"),
        ("2.0.0-rc.1", "2.0.0"),
        ("2.0.0-alpha", "2.0.0-beta"),
        ("2.0.0-rc.2", "2.0.0-rc.10"),
        ("2.0.0-1", "2.0.0-alpha"),
        ("2.0.0-rc", "2.0.0-rc.1"),
    ],
)
def test_versions_are_in_order(earlier: str, later: str) -> None:
    assert holds(f'semver("{earlier}").isLessThan(semver("{later}"))', A100)
    assert not holds(f'semver("{later}").isLessThan(semver("{earlier}"))', A100)


@pytest.mark.parametrize("text", ["1.2", "v1.2.3", "1.2.3.4", ""])
def test_what_is_no_version(text: str) -> None:
    assert parse_version(text) is None
    assert not holds(f'semver("{text}") == semver("{text}")', A100)


def test_a_version_may_have_a_build() -> None:
    assert parse_version("1.2.3-rc.1+build.7") == Version(1, 2, 3, "rc.1")


def test_the_language_is_loaded_with_the_first_expression() -> None:
    asked = "import sys, app.wire.device_selectors; print('cel' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"
