"""The fields of stock kinds, read off the models of the kubernetes client.

They are of the newest release that the client knows. Loading them takes a moment, so that waits
until somebody asks.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from app.sandbox.apiserver.stock_fields import ObjectType

_OBJECTS: Final = re.compile(r"(?:List\[)?(\w+)\]?")
"""How a model writes down that a field holds an object, or a list of them."""

_NOT_ASKED: Final = frozenset({"CustomResourceDefinition", "Event"})
"""Of these there are several models, or schemas in which anything may stand."""


class ModelType:
    """The type that a model of the client stands for."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._fields: dict[str, ObjectType | None] | None = None

    def fields(self) -> Mapping[str, ObjectType | None]:
        """By their names in a document."""
        if self._fields is None:
            names, types = self._model.attribute_map, self._model.openapi_types
            self._fields = {name: _type_in(types[attribute]) for attribute, name in names.items()}
        return self._fields


def stock_type(version: str, kind: str) -> ObjectType | None:
    """The type of a kind of Kubernetes; None when it is none, or not to be held to its fields."""
    name = version.rpartition("/")[2]
    return None if kind in _NOT_ASKED else _model(f"{name[:1].upper()}{name[1:]}{kind}")


@cache
def _model(name: str) -> ModelType | None:
    from kubernetes.client import models

    model = getattr(models, name, None)
    return None if model is None else ModelType(model)


def _type_in(field: str) -> ModelType | None:
    found = _OBJECTS.fullmatch(field)
    return None if found is None else _model(found[1])
