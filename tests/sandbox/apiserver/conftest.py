"""The two servers that are compared, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.apiserver.likeness import Servers, in_the_sandbox, on_the_real_server


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("like") / "real"
    with on_the_real_server(folder) as real, in_the_sandbox() as ours:
        yield Servers(real, ours)
