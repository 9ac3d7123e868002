"""What the documents show as printed is what is printed.

What `job-2` of the manual waits for is shown by `tests/cli/test_on_a_sandbox.py`.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from app.core.texts import closeness_text, describe
from app.model.reason import Cause, Closeness, Holder, NearestDomain, NoDomain, Refusal
from app.wire.controller_conf import ControllerConfError, parse_controller_conf
from tests.builders import make_amounts
from tests.documents.blocks import Block, blocks
from tests.documents.test_manifests import values

GPU: Final = "nvidia.com/gpu"
JOB_2: Final = frozenset(
    {
        "$ pumice explain job-2",
        "$ kubectl describe podgroup job-2-590b4796-6241-428c-97e0-90f4da244644",
    }
)
TRAIN: Final = "$ pumice explain train"
EVENTS: Final = "$ kubectl events -n pumice-system --for configmap/volcano-controller-configmap"


def command_of(block: Block) -> str:
    [command] = re.findall(r"^\$ .*", block.text, re.M)
    return str(command)


def shown(command: str) -> str:
    """What stands under the command, in one line."""
    [text] = [b.text for b in blocks("console") if command_of(b) == command]
    return " ".join(text.removeprefix(command).split())


def lacking(**lacks: int) -> NearestDomain:
    return NearestDomain("rack-7", takes=9, lacks=make_amounts(**{GPU: lacks["gpu"]}))


def test_no_other_command_is_shown_with_what_it_prints() -> None:
    assert {command_of(block) for block in blocks("console")} == JOB_2 | {TRAIN, EVENTS}


def test_a_group_without_a_domain_is_told_as_shown() -> None:
    domain = NoDomain(12, make_amounts(**{GPU: 1}), alike=True, tier=1, nearest=lacking(gpu=3))
    big = Holder("default/big", GPU, 5)
    refusal = Refusal(Cause.NO_DOMAIN, where="default/train", domain=domain, holders=(big,))
    assert shown(TRAIN) == f"podgroup default/train is Inqueue: {describe(refusal)}"


def test_a_gang_that_is_spread_wide_is_told_as_shown() -> None:
    [text] = [b.text for b in blocks("text") if b.text.startswith("Network:")]
    found = Closeness(members=12, domain="spine", tier=2, lowest=1, nearest=lacking(gpu=2))
    told = closeness_text(found, (Holder("default/big", GPU, 6),))
    assert text.split() == f"Network: {told}".split()


def test_a_mistake_in_the_configuration_of_discovery_is_told_as_shown() -> None:
    [config_map, *_] = [b for b in blocks("yaml") if "volcano-controller.conf" in b.text]
    conf = values(config_map)[0]["data"]["volcano-controller.conf"]
    with pytest.raises(ControllerConfError) as refused:
        parse_controller_conf(conf.replace("10m", "3 minutes"))
    assert f"{refused.value}; the configuration before it holds" in shown(EVENTS)
