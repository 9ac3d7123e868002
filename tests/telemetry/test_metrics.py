"""What /metrics will show."""

from prometheus_client import generate_latest

from app.telemetry import metrics


def test_every_metric_of_ours_has_the_prefix_and_renders() -> None:
    names = {family.name for family in metrics.REGISTRY.collect()}
    ours = {name for name in names if not name.startswith("process_")}
    assert ours
    assert all(name.startswith("pumice_") for name in ours)
    assert b"pumice_kube_requests" in generate_latest(metrics.REGISTRY)
