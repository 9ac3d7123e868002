"""Values of the model as bytes, and back: snapshots, plans and configurations as they are.

What two values share is stored once, as it is shared in memory, so a hundred snapshots of a cluster
take little more than one. Reading makes nothing but values of the model, arrays of numbers and
plain containers: a file from elsewhere can do no harm beyond being refused.

A value is a plain scalar, or ``[i]``, which is entry ``i`` of the table of objects. An object is
``[form, ...]``; it comes after those that it is made of.
"""

import dataclasses
import importlib
import pkgutil
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec
import numpy as np

import app.model
from app.wire.errors import DecodeError

VERSION: Final = 1
_MAGIC: Final = b"pumice-record\n"
_DTYPES: Final = frozenset({"int64", "int8", "float64", "bool"})
_LARGEST: Final = 4 << 30
"""Bytes of a file when it is unpacked."""

_SEQUENCES: Final[Mapping[type, str]] = {tuple: "t", list: "l"}
_SCALARS: Final = frozenset({type(None), bool, int, float, str, bytes})


class _Writer:
    """Collects the objects that values are made of."""

    def __init__(self) -> None:
        self.objects: list[list[Any]] = []
        self._at: dict[int, int] = {}
        self._kept: list[object] = []
        """What ids are of must live as long as these are looked up."""

    def put(self, value: Any) -> Any:
        """What stands for ``value``; raises TypeError for what is no value of the model."""
        if type(value) in _SCALARS:
            return value
        at = self._at.get(id(value))
        if at is None:
            made = self._made(value)
            at = self._at[id(value)] = len(self.objects)
            self._kept.append(value)
            self.objects.append(made)
        return [at]

    def _made(self, value: Any) -> list[Any]:
        kind = type(value)
        if isinstance(value, Enum):
            return ["e", _name_of(kind), value.name]
        if isinstance(value, np.ndarray):
            return _told_array(value)
        if isinstance(value, np.generic):
            return ["v", self.put(value.item())]
        if dataclasses.is_dataclass(kind):
            names = [field.name for field in dataclasses.fields(kind)]
            told = [(name, self.put(getattr(value, name))) for name in names]
            return ["o", _name_of(kind), *(part for each in told for part in each)]
        return self._told_container(value, kind)

    def _told_container(self, value: Any, kind: type) -> list[Any]:
        if isinstance(value, Mapping):
            form = "c" if kind is Counter else "d"
            return [form, *(self.put(part) for item in value.items() for part in item)]
        if isinstance(value, frozenset | set):
            return ["f", *map(self.put, value)]
        if isinstance(value, tuple) and kind is not tuple:
            return ["n", _name_of(kind), *map(self.put, value)]
        if kind in _SEQUENCES:
            return [_SEQUENCES[kind], *map(self.put, value)]
        raise TypeError(f"{kind.__name__} is no value of the model")


def _told_array(value: Any) -> list[Any]:
    dtype = "int64" if value.dtype == np.intp else str(value.dtype)
    if dtype not in _DTYPES:
        raise TypeError(f"an array of {dtype} is no value of the model")
    by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
    order: Literal["C", "F"] = "F" if by_columns else "C"
    return ["a", dtype, order, value.tobytes(order), *value.shape]


def packed(value: Any) -> bytes:
    """``value`` as the content of a file; raises TypeError for what is no value of the model."""
    writer = _Writer()
    root = writer.put(value)
    told = msgspec.msgpack.encode([VERSION, root, writer.objects])
    return _MAGIC + zlib.compress(told, level=6)


def unpacked(content: bytes) -> Any:
    """The value in the content of a file; raises `DecodeError`."""
    if not content.startswith(_MAGIC):
        raise DecodeError("", "not a file of pumice record")
    try:
        unzip = zlib.decompressobj()
        told = unzip.decompress(content[len(_MAGIC) :], _LARGEST)
        version, root, objects = msgspec.msgpack.decode(told, type=tuple[int, Any, list[list[Any]]])
    except (zlib.error, msgspec.DecodeError) as error:
        raise DecodeError("", f"the file is damaged: {error}") from None
    if version != VERSION:
        raise DecodeError("", f"the file is of version {version}, this reads {VERSION}")
    made: list[Any] = []
    try:
        for form, *parts in objects:
            made.append(_READ[form]([_value(part, made) for part in parts]))
        return _value(root, made)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        where = f"object {len(made)}"
        raise DecodeError(where, f"cannot be read: {type(error).__name__}: {error}") from None


def digest(value: Any) -> bytes:
    """Equal digests for equal values, however they are shared in memory and ordered in mappings."""
    return _Digests().of(value)


class _Digests:
    """The digests of values by identity: those that are shared are worked out once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._kept: list[object] = []

    def of(self, value: Any) -> bytes:
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = blake2b(self._told(value), digest_size=16).digest()
            self._kept.append(value)
        return found

    def _told(self, value: Any) -> bytes:
        kind = type(value)
        if kind in _SCALARS:
            return msgspec.msgpack.encode(value)
        if isinstance(value, Enum):
            return f"e {kind.__name__} {value.name}".encode()
        if isinstance(value, np.ndarray):
            return f"a {value.dtype} {value.shape} ".encode() + value.tobytes()
        if isinstance(value, np.generic):
            return msgspec.msgpack.encode(value.item())
        if dataclasses.is_dataclass(kind):
            parts = [self.of(getattr(value, field.name)) for field in dataclasses.fields(kind)]
            return f"o {kind.__name__} ".encode() + b"".join(parts)
        if isinstance(value, Mapping):
            return b"d " + b"".join(sorted(self.of(k) + self.of(v) for k, v in value.items()))
        if isinstance(value, frozenset | set):
            return b"f " + b"".join(sorted(map(self.of, value)))
        return b"t " + b"".join(map(self.of, value))


def _value(told: Any, made: Sequence[Any]) -> Any:
    if type(told) is not list:
        return told
    [at] = told
    if type(at) is not int or at < 0:
        raise ValueError(f"{at!r} is no object")
    return made[at]


def _array(parts: list[Any]) -> Any:
    dtype, order, content, *shape = parts
    if dtype not in _DTYPES or order not in ("C", "F"):
        raise ValueError(f"an array of {dtype}")
    array = np.frombuffer(content, dtype=dtype).reshape(shape, order=order)
    array.flags.writeable = False
    return array


def _mapping(parts: list[Any]) -> dict[Any, Any]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _object(parts: list[Any]) -> Any:
    kind = _classes()[parts[0]]
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{parts[0]} has no fields")
    told = _mapping(parts[1:])
    made = object.__new__(kind)
    for field in dataclasses.fields(kind):
        if field.name in told:
            value = told.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise ValueError(f"{parts[0]} has no {field.name}: another version wrote the file")
        object.__setattr__(made, field.name, value)
    if told:
        raise ValueError(f"{parts[0]} has a {next(iter(told))}: another version wrote the file")
    return made


def _named_tuple(parts: list[Any]) -> Any:
    kind = _classes()[parts[0]]
    if not issubclass(kind, tuple):
        raise TypeError(f"{parts[0]} is no tuple")
    return kind(*parts[1:])


def _member(parts: list[Any]) -> Any:
    kind = _classes()[parts[0]]
    if not issubclass(kind, Enum):
        raise TypeError(f"{parts[0]} has no members")
    return kind[parts[1]]


_READ: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "a": _array,
    "c": lambda parts: Counter(_mapping(parts)),
    "d": _mapping,
    "e": _member,
    "f": frozenset,
    "l": list,
    "n": _named_tuple,
    "o": _object,
    "t": tuple,
    "v": lambda parts: parts[0],
}


def _name_of(kind: type) -> str:
    name = f"{kind.__module__.removeprefix('app.model.')}.{kind.__qualname__}"
    if _classes().get(name) is not kind:
        raise TypeError(f"{kind.__name__} is no value of the model")
    return name


@cache
def _classes() -> Mapping[str, type]:
    """The dataclasses, named tuples and enumerations of the model, by module and name."""
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(app.model.__path__):
        name = f"app.model.{module.name}"
        for kind in vars(importlib.import_module(name)).values():
            if isinstance(kind, type) and kind.__module__ == name:
                is_value = dataclasses.is_dataclass(kind) or issubclass(kind, tuple | Enum)
                if is_value:
                    found[f"{module.name}.{kind.__qualname__}"] = kind
    return found
