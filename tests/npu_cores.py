"""Builders of Ascend chips that MindCluster's device plugin cuts."""

from __future__ import annotations

import json

from app.model.device_families import DeviceSetting
from app.model.devices import ContainerLimits, DeviceAsk, DeviceNotes
from app.model.node import Node
from app.model.npu_cores import CHIPS, CORES, LEVEL, SERVER_TYPE, VIDEO
from app.model.shape import PodShape
from tests.builders import make_node, make_shape

SETTING = DeviceSetting(npu_cores=True)


def names(count: int) -> str:
    """What the device plugin writes for so many chips."""
    return json.dumps({f"Ascend310P-{at}": {"IP": "", "SuperDeviceID": 0} for at in range(count)})


def chip_node(name: str, chips: int, *, cpu: int = 64_000) -> Node:
    """A node with so many chips."""
    notes = DeviceNotes(((CHIPS, names(chips)), (SERVER_TYPE, "Ascend310P-8")))
    return make_node(name, cpu=cpu, extra={CORES: 8 * chips}, devices=notes)


def asking(*cores: int, level: str = "", video: str = "", init: bool = False) -> DeviceAsk:
    """A pod whose containers ask for so many AI cores."""
    said = {LEVEL: level, VIDEO: video}
    labels = tuple((key, text) for key, text in sorted(said.items()) if text)
    return DeviceAsk(tuple(ContainerLimits(((CORES, each),), init=init) for each in cores), labels)


def chip_shape(cores: int, *, level: str = "", video: str = "") -> PodShape:
    """A pod with one container that asks for so many AI cores."""
    return make_shape(devices=asking(cores, level=level, video=video))
