"""YAML as Kubernetes reads it, where PyYAML reads something else.

What looks like a date or a time of day is text (PyYAML: a date, a number to base 60), numbers
may be octal as ``0o17`` and have an exponent without a dot, and whole numbers are integers however
they are written: JSON knows no difference. Tabs may separate.
"""

import re
from typing import Final

import yaml

from app.wire import go_yaml

_INTEGER: Final = "tag:yaml.org,2002:int"
_NUMBER: Final = "tag:yaml.org,2002:float"
_OTHERWISE: Final = frozenset({_INTEGER, _NUMBER, "tag:yaml.org,2002:timestamp"})
_INTEGERS: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", re.ASCII
)
_NUMBERS: Final = re.compile(
    r"[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))"
    r"|\.(?:nan|NaN|NAN)",
    re.ASCII,
)
_STARTS: Final = "-+.0123456789"


class Loader(go_yaml.Loader):
    """For `yaml.load_all`."""


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    # What Go calls octal has one zero before it; Python asks for the letter.
    return int(re.sub("^([-+]?)0o?(?=[0-7])", r"\g<1>0o", text), base=0)


def _number(loader: Loader, node: yaml.ScalarNode) -> int | float:
    number = loader.construct_yaml_float(node)
    return int(number) if number.is_integer() else number


Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag not in _OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _form, _read in ((_INTEGER, _INTEGERS, _integer), (_NUMBER, _NUMBERS, _number)):
    Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_form.pattern})$"), list(_STARTS))
    Loader.add_constructor(_tag, _read)
