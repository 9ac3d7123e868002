"""`docs/metrics.md` names every metric of ours with its labels, in the words of `/metrics`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from app.api.cluster_metrics import ClusterMetrics
from app.api.network_metrics import NetworkMetrics
from app.telemetry import metrics
from tests.service.rig import Rig
from tests.service.virtual_time import run

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def rows() -> list[str]:
    """A row of the table for each metric, by name."""
    ours = [
        each for each in vars(metrics).values() if isinstance(each, Counter | Gauge | Histogram)
    ]
    told = [(_name(each), each._labelnames, each._documentation) for each in ours]
    for collector in (ClusterMetrics, NetworkMetrics):
        told += [(f.name, f._labelnames, f.documentation) for f in families(collector)]
    return [
        f"| `{name}{{{','.join(labels)}}}` | {text} |" if labels else f"| `{name}` | {text} |"
        for name, labels, text in sorted(told)
    ]


def families(of: type[ClusterMetrics] | type[NetworkMetrics]) -> list[Any]:
    """What a collector shows of an empty cluster, each family also without values."""
    found: list[Any] = []

    async def scenario() -> None:
        rig = Rig()
        found.extend(of(rig.cache, rig.planning).collect())

    run(scenario())
    return found


def _name(metric: Any) -> str:
    """As it is scraped; of a histogram without the ends of its series."""
    name = str(metric._name)
    return f"{name}_total" if isinstance(metric, Counter) else name


def told() -> Iterator[str]:
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `pumice_"):
            yield line


def test_the_page_names_every_metric_and_no_other() -> None:
    assert list(told()) == rows()
