"""Settings for all tests, and the count of tests per cluster at the end of a run."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import uvloop

from tests.clusters import binaries, report
from tests.scale import EXAMPLES, SAME, scaled
from tests.service import virtual_time

pytest_plugins = ("tests.clusters.fixtures",)

_PLACE = "cluster"
_REAL_TIME = "real_time"
_HANGS_S = 60
_SHRINKING_S = 600
"""A property that fails is told by its smallest example, and finding that takes minutes."""

# A shared machine makes single examples slow for reasons that are not in the code.
hypothesis.settings.register_profile(
    "pumice", max_examples=scaled(EXAMPLES), deadline=None, derandomize=SAME, print_blob=True
)
hypothesis.settings.load_profile("pumice")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sandbox: runs against the embedded sandbox")
    config.addinivalue_line("markers", f"{_REAL_TIME}: a coroutine with sockets or threads")


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    for item in items:
        marked = (place for place in report.PLACES if item.get_closest_marker(place))
        item.user_properties.append((_PLACE, next(marked, "none")))
        test: Any = getattr(item, "obj", None)
        if hypothesis.is_hypothesis_test(test):
            item.add_marker(pytest.mark.timeout(_SHRINKING_S))
            if handle := getattr(test, "hypothesis", None):  # machines of states have none
                handle.inner_test = _in_virtual_time(handle.inner_test)


def _in_virtual_time(example: Callable[..., Any]) -> Callable[..., Any]:
    """One example of a property, which may be a coroutine."""
    if not inspect.iscoroutinefunction(example):
        return example

    @functools.wraps(example)
    def run(*args: Any, **given: Any) -> None:
        virtual_time.run(example(*args, **given))

    return run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in virtual time, or as our programs run where it asks."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in wanted}
    real_time = pyfuncitem.get_closest_marker(_REAL_TIME) is not None
    (_run_in_real_time if real_time else virtual_time.run)(pyfuncitem.obj(**given))
    return True


def _run_in_real_time(scenario: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(_HANGS_S):
            await scenario

    uvloop.run(main())


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Compile the control plane before the first test: no test's time limit covers minutes."""
    wanted = any(item.get_closest_marker("real") for item in session.items)
    if wanted and not session.config.option.collectonly:
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            binaries.folder()


def _tally(stats: dict[str, list[object]]) -> report.Tally:
    return report.Tally(
        (str(dict(result.user_properties)[_PLACE]), outcome)
        for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
        for result in stats.get(outcome, ())
        if isinstance(result, pytest.TestReport)
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = _tally(terminalreporter.stats)
    # Workers of pytest-xdist come here too, and whoever started them has their reports.
    if not tally or hasattr(terminalreporter.config, "workerinput"):
        return
    terminalreporter.section("clusters")
    for line in report.lines(tally):
        terminalreporter.write_line(line)
    if path := os.environ.get("PUMICE_TEST_TALLY"):
        terminalreporter.write_line("all runs so far:")
        for line in report.lines(report.add_up(tally, Path(path))):
            terminalreporter.write_line(f"  {line}")
