"""The fields of stock kinds and their types, read off the models of the kubernetes client.

The models are of the newest release that the client knows. Loading them takes a moment, so they are
loaded at the first question. The models do not tell how long a number is, nor a quantity from text:
that goes by the names of fields, which mean the same in every kind.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from app.sandbox.apiserver.stock_fields import FieldType, Many, ObjectType, Shape

_FIELD: Final = re.compile(r"(?:(List)\[|(Dict)\[str, )?(\w+)\]?")
"""How a model writes down what a field holds."""

_NAME: Final = re.compile(r"[A-Za-z]*?V(\d+(?:(?:alpha|beta)\d+)?)(\w+)")
"""How the name of a model tells its version and its kind."""

_NAMESAKES: Final = {
    ("v1", "Event"): "CoreV1Event",
    ("events.k8s.io/v1", "Event"): "EventsV1Event",
    ("resource.k8s.io/v1", "ResourceClaim"): "ResourceV1ResourceClaim",
}
"""The kinds whose names are those of other types of the same version."""

_SHAPES: Final = {
    "str": Shape.TEXT,
    "bool": Shape.TRUTH,
    "int": Shape.WHOLE,
    "float": Shape.NUMBER,
    "bytes": Shape.BYTES,
    "datetime": Shape.TIME,
}
_LONG: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "defaultUser",
        "deletionGracePeriodSeconds",
        "expirationSeconds",
        "fsGroup",
        "generation",
        "gracePeriodSeconds",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "observedGeneration",
        "revision",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "sizeBytes",
        "startingDeadlineSeconds",
        "supplementalGroups",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "user",
    }
)
_MICRO_TIMES: Final = frozenset({"acquireTime", "eventTime", "lastObservedTime", "renewTime"})
_WHOLE_OR_TEXT: Final = frozenset(
    {"maxSurge", "maxUnavailable", "minAvailable", "port", "targetPort"}
)
_QUANTITIES: Final = frozenset({"divisor", "sizeLimit"})
_LISTS_OF_QUANTITIES: Final = frozenset(
    {
        "allocatable",
        "allocatedResources",
        "capacity",
        "default",
        "defaultRequest",
        "hard",
        "limits",
        "max",
        "maxLimitRequestRatio",
        "min",
        "overhead",
        "podFixed",
        "requests",
        "used",
    }
)


class ModelType:
    """The type that a model of the client stands for."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._fields: dict[str, FieldType] | None = None

    @property
    def name(self) -> str:
        """As Go names it."""
        found = _NAME.fullmatch(self._model.__name__)
        return f"v{found[1]}.{found[2]}" if found else str(self._model.__name__)

    def fields(self) -> Mapping[str, FieldType]:
        """The fields by their names in a document."""
        if self._fields is None:
            names, types = self._model.attribute_map, self._model.openapi_types
            self._fields = {
                name: _field(name, types[attribute]) for attribute, name in names.items()
            }
        return self._fields


def stock_type(version: str, kind: str) -> ObjectType | None:
    """The type of a kind of Kubernetes; None when it is none."""
    name = version.rpartition("/")[2]
    plain = "" if kind == "Event" else f"{name[:1].upper()}{name[1:]}{kind}"
    return _model(_NAMESAKES.get((version, kind), plain))


@cache
def _model(name: str) -> ModelType | None:
    from kubernetes.client import models

    model = getattr(models, name, None)
    return None if model is None else ModelType(model)


def _field(name: str, written: str) -> FieldType:
    found = _FIELD.fullmatch(written)
    if found is None:
        return FieldType()
    many = Many.LIST if found[1] else Many.MAP if found[2] else Many.ONE
    if found[3] in _SHAPES:
        return FieldType(_shape(name, _SHAPES[found[3]], many), many)
    if name in _WHOLE_OR_TEXT and many is Many.ONE and found[3] == "object":
        return FieldType(Shape.WHOLE_OR_TEXT)
    return FieldType(many=many, object=_model(found[3]))


def _shape(name: str, shape: Shape, many: Many) -> Shape:
    match shape, many:
        case Shape.WHOLE, _ if name in _LONG:
            return Shape.LONG
        case Shape.TIME, _ if name in _MICRO_TIMES:
            return Shape.MICRO_TIME
        case Shape.TEXT, Many.ONE if name in _QUANTITIES:
            return Shape.QUANTITY
        case Shape.TEXT, Many.MAP if name in _LISTS_OF_QUANTITIES:
            return Shape.QUANTITY
    return shape
