"""Arguments of every plugin: a number or a switch may be text, and a bad value names its key."""

from __future__ import annotations

import re

import pytest

from app.core.conf_error import ConfError
from app.core.plugins.catalogue import PLUGINS
from app.model.conf import PluginConf
from tests.documents.arguments import Argument, arguments_of

PARTS = frozenset({"estimator", "proportional", "resources", "sra", "thresholds"})
"""Arguments that are mappings; what is inside is named by the way to it."""
GIVEN = {
    "duration": ("90s", "1m30s"),
    "number": (0.5, "0.5"),
    "quantity": ("250m", 1),
    "true or false": (True, "true"),
    "whole number": (1, "1"),
}
"""What an argument is -> values of it."""
EACH = pytest.mark.parametrize(
    ("plugin", "argument"),
    [(plugin, each) for plugin in PLUGINS for each in arguments_of(plugin) if each.kind in GIVEN],
    ids=lambda each: each.key if isinstance(each, Argument) else each,
)


def conf(plugin: str, key: str, value: object) -> PluginConf:
    first, *rest = key.split(".")
    if first in PARTS:
        for name in reversed(rest):
            value = {name: value}
        key = first
    return PluginConf(plugin, arguments={key: value})


@EACH
def test_an_argument_may_be_given_as_text_and_as_a_value(plugin: str, argument: Argument) -> None:
    for value in GIVEN[argument.kind]:
        assert callable(PLUGINS[plugin](conf(plugin, argument.key, value)))


@EACH
def test_a_value_that_cannot_be_read_is_refused_by_plugin_and_key(
    plugin: str, argument: Argument
) -> None:
    named = re.escape(f"plugin {plugin}: argument {argument.key}: 'no such'")
    with pytest.raises(ConfError, match=named):
        PLUGINS[plugin](conf(plugin, argument.key, "no such"))
