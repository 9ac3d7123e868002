"""``volcano-controller.conf``: what Volcano's own examples mean, and where a mistake is."""

import pytest

from app.wire.controller_conf import (
    ControllerConfError,
    Level,
    Server,
    Topology,
    parse_controller_conf,
)
from app.wire.unstructured import Key

FROM_VOLCANO = """\
networkTopologyDiscovery:
  - source: ufm
    enabled: true
    interval: 10m
    credentials:
      secretRef:
        name: ufm-credentials
        namespace: volcano-system
    config:
      endpoint: https://ufm-server:8080
      insecureSkipVerify: true
  - source: roce
    enabled: false
    interval: 15m
    config:
      endpoint: https://roce-server:9090
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        topologyA2:
          - nodeLabel: "volcano.sh/tor"
          - nodeLabel: "kubernetes.io/hostname"
        topologyA3:
          - nodeLabel: "volcano.sh/hypercluster"
          - nodeLabel: "volcano.sh/hypernode"
          - nodeLabel: "kubernetes.io/hostname"
"""

PROFILES = """\
networkTopologyDiscovery:
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        deep:
          nodeSelector:
            matchLabels:
              volcano.sh/network-topology-profile: deep
          levels:
            - nodeLabel: example.com/cluster
              tierName: hypercluster
            - nodeLabel: example.com/pod
            - nodeLabel: kubernetes.io/hostname
"""


def server(**lines: str) -> str:
    """A conf of one server; each keyword is a field of the entry as it stands in the text."""
    fields = {"source": "ufm", "enabled": "true", "config": "{endpoint: ufm}"} | lines
    if "credentials" not in lines:
        fields["credentials"] = "{secretRef: {name: s, namespace: ns}}"
    text = "\n".join(f"  {key}: {value}" for key, value in fields.items())
    return f"networkTopologyDiscovery:\n-\n{text}\n"


def labels(levels: str, name: str = "t") -> str:
    """A conf of one topology, whose value stands in line 5."""
    return (
        "networkTopologyDiscovery:\n- source: label\n  enabled: true\n"
        f"  config: {{networkTopologyTypes:\n    {{{name}: {levels}}}}}\n"
    )


def test_volcanos_example_is_read() -> None:
    found = parse_controller_conf(FROM_VOLCANO)
    assert found.topologies == (
        Topology("topologyA2", (Level("volcano.sh/tor", "volcano.sh/tor"),)),
        Topology(
            "topologyA3",
            (
                Level("volcano.sh/hypercluster", "volcano.sh/hypercluster"),
                Level("volcano.sh/hypernode", "volcano.sh/hypernode"),
            ),
        ),
    )
    assert found.servers == (
        Server(
            source="ufm",
            url="https://ufm-server:8080",
            interval_s=600.0,
            secret=Key("volcano-system", "ufm-credentials"),
            insecure=True,
        ),
    )
    assert (found.unsupported, found.warnings) == ((), ())
    assert found.sources == ("label", "ufm")


def test_profiles_are_read() -> None:
    (topology,) = parse_controller_conf(PROFILES).topologies or ()
    assert topology.levels == (
        Level("example.com/cluster", "hypercluster"),
        Level("example.com/pod", "example.com/pod"),
    )
    assert topology.selector == {"volcano.sh/network-topology-profile": "deep"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        "other: {}",
        "networkTopologyDiscovery:",
        "networkTopologyDiscovery: []",
        server(enabled="false", source="17", config="[]"),
        "networkTopologyDiscovery: [{source: label}]",
    ],
)
def test_nothing_is_discovered_where_nothing_is_enabled(text: str) -> None:
    assert parse_controller_conf(text).sources == ()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("ufm", "https://ufm"),
        ("ufm:8443", "https://ufm:8443"),
        ("http://ufm/", "http://ufm/"),
        ('"https://[::1]:1"', "https://[::1]:1"),
    ],
)
def test_an_address_without_a_scheme_is_of_https(given: str, url: str) -> None:
    (found,) = parse_controller_conf(server(config=f"{{endpoint: {given}}}")).servers
    assert found.url == url


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("10m", 600.0), ("1s", 1.0), ('""', 3600.0), ("0s", 3600.0), ("-5m", 3600.0), ("", 3600.0)],
)
def test_the_interval_is_an_hour_where_none_is_meant(given: str, seconds: float) -> None:
    if given == '""':
        with pytest.raises(ControllerConfError, match=r"interval: is not text"):
            parse_controller_conf(server(interval=given))
        return
    (found,) = parse_controller_conf(server(interval=given)).servers
    assert found.interval_s == seconds


def test_switches_may_be_text() -> None:
    text = server(enabled='"true"', config='{endpoint: u, insecureSkipVerify: "false"}')
    (found,) = parse_controller_conf(text).servers
    assert not found.insecure


def test_a_document_needs_no_credentials() -> None:
    text = server(source="rest", config="{url: 'https://inventory/tree?v=1'}", credentials="")
    (found,) = parse_controller_conf(text).servers
    assert (found.source, found.url, found.secret) == ("rest", "https://inventory/tree?v=1", None)


def test_sources_there_are_none_of_are_named() -> None:
    text = server(source="roce", config="{endpoint: e}")
    assert parse_controller_conf(text).unsupported == ("roce",)


def test_what_has_no_effect_is_told_with_its_line() -> None:
    text = server(config="{endpoint: ufm, tokn: x}", intervall="3m")
    assert parse_controller_conf(text).warnings == (
        "line 6: networkTopologyDiscovery[0].intervall: has no effect",
        "line 5: networkTopologyDiscovery[0].config.tokn: has no effect",
    )


ENTRY = r"networkTopologyDiscovery\[0\]"
TYPE = rf"line 5: {ENTRY}\.config\.networkTopologyTypes\.t"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", r"not YAML: line 1, column 5"),
        ("a: b\nc: d: e", r"not YAML: line 2, column 5"),
        ("[" * 2000, r"not YAML: "),
        ("[]", r"line 1: the document: is not a mapping"),
        ("networkTopologyDiscovery: {a: b}", r"line 1: networkTopologyDiscovery: is not a list"),
        ("\nnetworkTopologyDiscovery:\n- 7", rf"line 3: {ENTRY}: is not a mapping"),
        (server(enabled="perhaps"), rf"line 4: {ENTRY}\.enabled: 'perhaps' is not true or false"),
        (server(source="7"), rf"line 3: {ENTRY}\.source: is not text"),
        ("networkTopologyDiscovery:\n- enabled: true", rf"line 2: {ENTRY}: source is missing"),
        (server(config="{}"), rf"line 5: {ENTRY}\.config: endpoint is missing"),
        (server(config="[]"), rf"line 5: {ENTRY}\.config: is not a mapping"),
        (server(config="{endpoint: 'ftp://u'}"), r"\.endpoint: 'ftp://u' is no http or https URL"),
        (server(config="{endpoint: 'https://u:x'}"), r"is no http or https URL"),
        (server(config="{endpoint: 'https://[::1'}"), r"is no http or https URL"),
        (server(config="{endpoint: 'a b'}"), r"is no http or https URL"),
        (server(config="{endpoint: 'https://me:pass@u'}"), r"\.endpoint: holds a user"),
        (server(config="{endpoint: u, insecureSkipVerify: 2}"), r"2 is not true or false"),
        (server(interval="3 minutes"), rf"line 6: {ENTRY}\.interval: '3 minutes' is not a dur"),
        (server(interval="10ms"), r"is shorter than 1 s"),
        (server(interval="7"), r"\.interval: is not text"),
        (server(credentials=""), rf"line 3: {ENTRY}: credentials is missing"),
        (server(credentials="{secretRef: {name: s}}"), r"secretRef: namespace is missing"),
        (
            server(credentials="{secretRef: {name: ../s, namespace: ns}}"),
            r"secretRef\.name: a lower",
        ),
        (server() + server()[26:], r"line 8: .*\[1\]\.source: ufm is enabled in line 3 already"),
        (labels("7"), rf"{TYPE}: is not a list"),
        (labels("[]"), rf"{TYPE}: has no level above the last"),
        (labels("[{nodeLabel: rack}]"), rf"{TYPE}: has no level above the last"),
        (labels("[{label: rack}, {nodeLabel: host}]"), rf"{TYPE}\[0\]: nodeLabel is missing"),
        (labels("[{nodeLabel: a b}, {nodeLabel: host}]"), r"\[0\]\.nodeLabel: name part must"),
        (labels("[{nodeLabel: a}, {nodeLabel: a}]"), rf"{TYPE}\[1\]: nodeLabel a is there already"),
        (labels("[]", "x" * 21), r"the name has to have 1 to 20 letters"),
        (labels("{levels: []}"), rf"{TYPE}\.levels: has no level above"),
        (labels("{}"), rf"{TYPE}: levels is missing"),
        (labels("{}", "'a b'"), r"the name becomes a label"),
        (
            labels("{levels: [{nodeLabel: a}, {nodeLabel: b}], nodeSelector: {matchLabels: {}}}"),
            r"matchLabels: names no label",
        ),
        (
            labels("{levels: [{nodeLabel: a}, {nodeLabel: b}]}"),
            rf"{TYPE}: nodeSelector is missing",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_with_line_and_key(text: str, said: str) -> None:
    with pytest.raises(ControllerConfError, match=said):
        parse_controller_conf(text)


def test_aliases_of_aliases_are_not_followed_for_ever() -> None:
    levels = ["a0: &a0 [1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ControllerConfError, match="more than 100000 values"):
        parse_controller_conf("\n".join(levels))


def test_a_document_that_holds_itself_is_refused() -> None:
    with pytest.raises(ControllerConfError, match="not YAML"):
        parse_controller_conf("networkTopologyDiscovery: &a [*a]")


def test_merged_fields_count() -> None:
    base = "{source: ufm, enabled: true, credentials: {secretRef: {name: s, namespace: ns}}}"
    text = f"b: &b {base}\nnetworkTopologyDiscovery:\n- <<: *b\n  config: {{endpoint: u}}\n"
    (found,) = parse_controller_conf(text).servers
    assert found.url == "https://u"
