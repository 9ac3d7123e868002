"""Scheduler configurations that differ from the one built in by their plugins."""

from __future__ import annotations

from typing import Any

import yaml

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


def _entry(plugin: Plugin) -> dict[str, Any]:
    return {"name": plugin} if isinstance(plugin, str) else plugin
