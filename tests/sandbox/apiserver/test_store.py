"""The store and those who listen to it."""

from __future__ import annotations

import pytest

from app.sandbox.apiserver.store import Store, StoreChange
from tests.sandbox.documents import pod


def test_a_listener_that_fails_keeps_nobody_else_from_hearing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, heard = Store(), list[str]()

    def fail(_: StoreChange) -> None:
        raise LookupError("operator")

    def hear(change: StoreChange) -> None:
        heard.append(change.document["metadata"]["name"])

    store.on_change(fail)
    store.on_change(hear)
    store.put("/pods", pod("a"))
    store.put("/pods", pod("b"))
    assert heard == ["a", "b"]
    assert {one.getMessage() for one in caplog.records} == {"listener failed"}
