"""Names as Kubernetes allows them; what is wrong is told in its words."""

import re
from hashlib import sha256
from urllib.parse import quote

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PORT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[ -<>-~]+")
_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")

_LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
_LONGEST_PORT = 15


def label_problems(name: str) -> list[str]:
    """What keeps ``name`` from being a DNS label (RFC 1123)."""
    found = _too_long(name, _LONGEST_LABEL)
    if not _LABEL.fullmatch(name):
        found.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
            "'-', and must start and end with an alphanumeric character"
        )
    return found


def subdomain_problems(name: str) -> list[str]:
    """What keeps ``name`` from being a DNS subdomain (RFC 1123)."""
    found = _too_long(name, LONGEST_SUBDOMAIN)
    if not _SUBDOMAIN.fullmatch(name):
        found.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character"
        )
    return found


def qualified_problems(name: str) -> list[str]:
    """What keeps ``name`` from being a qualified name, an optional DNS prefix included."""
    prefix, slash, plain = name.rpartition("/")
    found = [f"prefix part {problem}" for problem in subdomain_problems(prefix)] if slash else []
    found += [f"name part {problem}" for problem in _too_long(plain, _LONGEST_LABEL)]
    if not _QUALIFIED.fullmatch(plain):
        found.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
            "and end with an alphanumeric character"
        )
    return found


def label_value_problems(value: str) -> list[str]:
    """What keeps ``value`` from being the value of a label; it may be empty."""
    found = _too_long(value, _LONGEST_LABEL)
    if value and not _QUALIFIED.fullmatch(value):
        found.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
            "or '.', and must start and end with an alphanumeric character"
        )
    return found


def port_name_problems(name: str) -> list[str]:
    """What keeps ``name`` from being the name of a port."""
    found = _too_long(name, _LONGEST_PORT)
    if not _PORT.fullmatch(name):
        found.append(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-) inside, not "
            "two in a row"
        )
    if not any("a" <= each <= "z" for each in name):
        found.append("must contain at least one letter (a-z)")
    return found


def is_variable(name: str) -> bool:
    """Whether ``name`` can be the name of an environment variable."""
    return _VARIABLE.fullmatch(name) is not None


def plain(text: str) -> str:
    """``text`` as it can stand for a name in a sentence: as it is, if an object may have that name.

    Else it is escaped, and cut if it is too long, so that texts which differ are told apart.
    """
    if len(text) <= LONGEST_SUBDOMAIN and _PLAIN.fullmatch(text):
        return text
    escaped = quote(text[:LONGEST_SUBDOMAIN], safe="", errors="replace")
    escaped = escaped.replace(".", "%2E").replace("~", "%7E")
    if len(text) <= LONGEST_SUBDOMAIN and len(escaped) <= LONGEST_SUBDOMAIN:
        return escaped
    digest = sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"{escaped[: LONGEST_SUBDOMAIN - len(digest) - 1]}~{digest}"


def _too_long(name: str, most: int) -> list[str]:
    return [f"must be no more than {most} characters"] if len(name) > most else []
