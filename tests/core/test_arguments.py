"""Typed reading of plugin arguments."""

import pytest

from app.core.arguments import Arguments, parse_bool
from app.core.conf_error import ConfError
from app.model.conf import PluginConf


def arguments(**values: object) -> Arguments:
    return Arguments(PluginConf("p", arguments=values))


@pytest.mark.parametrize("value", [None, "", "  "])
def test_absent_null_and_empty_arguments_keep_their_default(value: object) -> None:
    for given in (arguments(), arguments(key=value)):
        assert given.integer("key", 4) == 4
        assert given.number("key", 1.2) == 1.2
        assert given.flag("key", default=True)
        assert given.text("key") == ""
        assert given.duration("key") is None


@pytest.mark.parametrize("value", [3, 3.0, "3", " 3 ", "3.0"])
def test_a_number_may_be_written_in_many_ways(value: object) -> None:
    assert arguments(key=value).integer("key", 0) == 3
    assert arguments(key=value).number("key", 0) == 3.0


@pytest.mark.parametrize("value", [True, "x", "inf", "nan", [3], {}, "1e999"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ConfError) as caught:
        arguments(key=value).number("key", 0)
    assert str(caught.value) == f"plugin p: argument key: {value!r} is not a number"


def test_a_fraction_is_no_whole_number() -> None:
    with pytest.raises(ConfError, match=r"argument key: '1\.5' is not a whole number"):
        arguments(key="1.5").integer("key", 0)


@pytest.mark.parametrize(("value", "meaning"), [(True, True), ("TRUE", True), (" f ", False)])
def test_booleans_may_be_text(value: object, meaning: bool) -> None:
    assert parse_bool(value) is meaning


@pytest.mark.parametrize("value", [1, 0, "yes", "off", "", None, []])
def test_other_values_are_no_booleans(value: object) -> None:
    with pytest.raises(ValueError, match="is not true or false"):
        parse_bool(value)


def test_an_argument_may_be_a_duration() -> None:
    assert arguments(key=" 1h ").duration("key") == 3600
