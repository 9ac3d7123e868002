"""CEL expressions about devices, as DeviceClasses and claims have them.

What an expression calls that is not known here is decided by kube-scheduler: such an expression
holds of every device. One that fails for a device (it names an attribute that the device has not)
does not hold: kube-scheduler allocates no such device either.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from app.model.amounts import CPU
from app.model.device_slices import Attribute, PoolDevice, Version
from app.wire import quantity

if TYPE_CHECKING:
    import cel

_OPERATORS: Final = re.compile(r"[@!_].*")
"""What the library calls operators and macros: ``_==_``, ``@in``, ``!_``."""
_DOMAIN: Final = re.compile(r"""device\s*\.\s*(attributes|capacity)\s*\[\s*["']([^"']*)["']\s*\]""")
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_TEXTS: Final = ("contains", "startsWith", "endsWith", "matches")
_CASTS: Final = ("int", "uint", "double", "string", "bool")
_BUILT_IN: Final = frozenset(("size", "type", *_TEXTS, *_CASTS))
_UNDEFINED: Final = "Undefined variable or function"
_KEPT: Final = 4_096


def parse_version(text: str) -> Version | None:
    """A semantic version; None: it is none."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    major, minor, patch, pre = found.groups(default="")
    return Version(int(major), int(minor), int(patch), pre)


def holds(expression: str, device: PoolDevice) -> bool:
    """Whether a device satisfies an expression, or may."""
    try:
        program = _compiled(expression)
        if program is None:
            return True
        return program.execute(_context(device, _domains(expression))) is True
    except RuntimeError as error:
        return device.opaque or _UNDEFINED in str(error)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return device.opaque
    except Exception:  # what one user writes must not end the cycle of all: kube-scheduler decides
        return True


@lru_cache(maxsize=_KEPT)
def _compiled(expression: str) -> "cel.Program | None":
    """The program; None: only kube-scheduler understands it."""
    # With a command line of its own it takes a while to load, and few clusters have expressions.
    import cel

    try:
        program = cel.compile(expression)
    except ValueError:
        return None
    known = _BUILT_IN | _FUNCTIONS.keys()
    called = [name for name in program.functions() if not _OPERATORS.fullmatch(name)]
    return program if known.issuperset(called) else None


@lru_cache(maxsize=_KEPT)
def _domains(expression: str) -> frozenset[tuple[str, str]]:
    """The domains that it indexes: one that a device has not is empty, and no fault."""
    return frozenset(_DOMAIN.findall(expression))


@lru_cache(maxsize=_KEPT)
def _context(device: PoolDevice, domains: frozenset[tuple[str, str]]) -> "cel.Context":
    import cel

    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}
    for kind, domain in domains:
        (attributes if kind == "attributes" else capacity).setdefault(domain, {})
    for name, value in device.attributes:
        domain, short = _split(name, device.id.driver)
        attributes.setdefault(domain, {})[short] = _value(value)
    for name, amount in device.capacity:
        domain, short = _split(name, device.id.driver)
        milli = amount.amount if short == CPU else amount.amount * 1_000
        capacity.setdefault(domain, {})[short] = _quantity(milli)
    seen = {
        "driver": device.id.driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.shared,
    }
    return cel.Context({"device": seen}, _FUNCTIONS)


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, short = name.partition("/")
    return (domain, short) if slash else (driver, name)


def _value(value: Attribute) -> Any:
    return {"semver": list(value)} if isinstance(value, Version) else value


def _quantity(milli: int) -> dict[str, int]:
    return {"quantity": milli}


def _read_quantity(text: str) -> dict[str, int]:
    return _quantity(quantity.parse(text, milli=True))


def _read_version(text: str) -> dict[str, list[Any]]:
    found = parse_version(text)
    if found is None:
        raise ValueError(text)
    return {"semver": list(found)}


def _compare(one: Any, other: Any) -> int:
    if "quantity" in one:
        first, second = int(one["quantity"]), int(other["quantity"])
        return (first > second) - (first < second)
    mine, theirs = Version(*one["semver"]), Version(*other["semver"])
    if mine[:3] != theirs[:3]:
        return 1 if mine[:3] > theirs[:3] else -1
    return _compare_pre(mine.pre, theirs.pre)


def _compare_pre(one: str, other: str) -> int:
    if one == other:
        return 0
    if not one or not other:
        return 1 if not one else -1
    mine, theirs = _parts(one), _parts(other)
    return 1 if mine > theirs else -1


def _parts(pre: str) -> list[tuple[bool, int, str]]:
    """Numbers go before words, and shorter lists before longer ones."""
    parts = pre.split(".")
    return [(not each.isdigit(), int(each) if each.isdigit() else 0, each) for each in parts]


def _part(position: int) -> Callable[[Any], int]:
    return lambda version: int(version["semver"][position])


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "quantity": _read_quantity,
    "semver": _read_version,
    "compareTo": _compare,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
}
