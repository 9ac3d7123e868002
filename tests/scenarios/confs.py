"""Scheduler configurations that differ from the one built in by their plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_PREEMPTING = Path(__file__).parents[2] / "scheduler-config" / "volcano-scheduler-preempting.conf"

Plugin = str | dict[str, Any]
"""Its name, or its entry with arguments."""


def conf(*second: Plugin, first: tuple[Plugin, ...] = ()) -> str:
    """Two tiers: ``priority``, ``gang`` and those of ``first``; then those of ``second``."""
    tiers = (("priority", "gang", *first), second)
    return yaml.safe_dump(
        {
            "actions": "enqueue, allocate, backfill",
            "tiers": [{"plugins": [_entry(plugin) for plugin in tier]} for tier in tiers],
        }
    )


def evicting(actions: str, **shares: Any) -> str:
    """The shipped conf that evicts, with these actions in the stead of its own.

    ``shares``, if given, is the entry of the plugin that stands there for ``proportion``.
    """
    document = yaml.safe_load(_PREEMPTING.read_text(encoding="utf-8"))
    document["actions"] = actions
    for plugin in (plugin for tier in document["tiers"] for plugin in tier["plugins"]):
        if shares and plugin["name"] == "proportion":
            plugin.update(shares)
    return yaml.safe_dump(document)


def _entry(plugin: Plugin) -> dict[str, Any]:
    return {"name": plugin} if isinstance(plugin, str) else plugin
