"""Flag syntax: what Go's flag package accepts is accepted, what it refuses is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobplugins.rules.flags import (
    COUNT,
    MOUNT_PATH,
    NAME,
    PORT,
    SWITCH,
    TEXT,
    FlagType,
    one_of,
    parse,
)

NO_PATH = "is not an absolute path without ':'"
KNOWN = {"port": PORT, "on": SWITCH, "task": NAME, "path": MOUNT_PATH, "count": COUNT}
SPELLING = "its flags are --port=PORT, --on, --task=NAME, --path=PATH, --count=NUMBER"


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ([], {}),
        (["--port=22"], {"port": 22}),
        (["-port=22"], {"port": 22}),
        (["--port", "22"], {"port": 22}),
        (["-port", "22"], {"port": 22}),
        (["--port=0x16"], {"port": 22}),
        (["--port=22", "--port=23"], {"port": 23}),
        (["--on"], {"on": True}),
        (["--on=true"], {"on": True}),
        (["--on=T"], {"on": True}),
        (["--on=1"], {"on": True}),
        (["--on=false"], {"on": False}),
        (["--on=0"], {"on": False}),
        (["--on", "--port=22"], {"on": True, "port": 22}),
        (["--on", "true", "--port=22"], {"on": True, "port": 22}),
        (["--on", "false"], {"on": False}),
        (["--task=a=b"], {"task": "a=b"}),
        (["--task", "-x"], {"task": "-x"}),
        (["--path=/keys"], {"path": "/keys"}),
        (["--path=/keys/"], {"path": "/keys"}),
        (["--path=/"], {"path": "/"}),
        (["--count=1"], {"count": 1}),
        (["", "  "], {}),
        (["--"], {}),
        ([" --port=22 "], {"port": 22}),
    ],
)
def test_good_flags_are_read(arguments: list[str], values: dict[str, object]) -> None:
    parsed = parse(KNOWN, arguments)
    assert (parsed.values, parsed.faults) == (values, ())


@pytest.mark.parametrize(
    ("arguments", "what", "remedy"),
    [
        (["--port"], "--port has no value", "write --port=PORT"),
        (["--port="], "--port: '' is not a port from 1 to 65535", "write --port=PORT"),
        (["--port=ssh"], "--port: 'ssh' is not a port from 1 to 65535", "write --port=PORT"),
        (["--port=0"], "--port: '0' is not a port from 1 to 65535", "write --port=PORT"),
        (["--port=65536"], "--port: '65536' is not a port from 1 to 65535", "write --port=PORT"),
        (["--on=yes"], "--on: 'yes' is not true or false", "write --on=true|false"),
        (["--task="], "--task: '' is not a name", "write --task=NAME"),
        (
            ["--path=keys"],
            "--path: 'keys' is not an absolute path without ':'",
            "write --path=PATH",
        ),
        (
            ["--path=/a:b"],
            "--path: '/a:b' is not an absolute path without ':'",
            "write --path=PATH",
        ),
        (["--count=0"], "--count: '0' is not a whole number above 0", "write --count=NUMBER"),
        (["--count=1.5"], "--count: '1.5' is not a whole number above 0", "write --count=NUMBER"),
    ],
)
def test_a_bad_flag_is_named_with_what_to_write(
    arguments: list[str], what: str, remedy: str
) -> None:
    parsed = parse(KNOWN, arguments)
    assert parsed.values == {}
    assert [(fault.what, fault.remedy) for fault in parsed.faults] == [(what, remedy)]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--nope"], "there is no flag --nope"),
        (["--nope=1"], "there is no flag --nope"),
        (["--nope", "1"], "there is no flag --nope"),
        (["22"], "'22' is not a flag"),
        (["-"], "'-' is not a flag"),
        (["---port=22"], "'---port=22' is not a flag"),
        (["--=22"], "'--=22' is not a flag"),
    ],
)
def test_what_means_nothing_to_a_plugin_is_ignored_and_told(
    arguments: list[str], what: str
) -> None:
    parsed = parse(KNOWN, arguments)
    assert (parsed.values, parsed.faults) == ({}, ())
    assert [(fault.what, fault.remedy) for fault in parsed.ignored] == [(what, SPELLING)]


def test_flags_after_a_bad_one_are_read_and_every_bad_one_is_named() -> None:
    parsed = parse(KNOWN, ["--nope", "--port=22", "stray", "--count=x", "--task=", "--on"])
    assert parsed.values == {"port": 22, "on": True}
    assert [fault.what for fault in parsed.faults] == [
        "--count: 'x' is not a whole number above 0",
        "--task: '' is not a name",
    ]
    assert [fault.what for fault in parsed.ignored] == [
        "there is no flag --nope",
        "'stray' is not a flag",
    ]


def test_a_plugin_without_flags_says_so() -> None:
    (fault,) = parse({}, ["--port=22"]).ignored
    assert fault.remedy == "this plugin takes no flags"


def test_one_of_a_few_words_is_asked_for_by_name() -> None:
    known = {"type": one_of("rsa", "ed25519")}
    assert parse(known, ["--type=rsa"]).values == {"type": "rsa"}
    (fault,) = parse(known, ["--type=dsa"]).faults
    assert fault.what == "--type: 'dsa' is not one of rsa, ed25519"
    assert fault.remedy == "write --type=rsa|ed25519"


def test_a_long_argument_is_not_shown_whole() -> None:
    (fault,) = parse({}, ["secret" * 100]).ignored
    assert fault.what == f"{('secret' * 100)[:40] + '...'!r} is not a flag"


@given(st.text())
def test_any_text_survives_as_a_value(text: str) -> None:
    for arguments in ([f"--key={text}"], ["--key", text]):
        parsed = parse({"key": TEXT}, [*arguments, "--last=1"])
        assert parsed.values == {"key": text}
        assert [fault.what for fault in parsed.ignored] == ["there is no flag --last"]


@given(
    st.lists(st.text(max_size=8) | st.sampled_from(["--port", "-on", "--task=x", "--", "-", "="])),
    st.dictionaries(st.text(min_size=1, max_size=4), st.sampled_from([PORT, SWITCH, NAME, TEXT])),
)
def test_no_arguments_break_the_reader(arguments: list[str], known: dict[str, FlagType]) -> None:
    parsed = parse(KNOWN | known, arguments)
    assert set(parsed.values) <= set(KNOWN | known)
