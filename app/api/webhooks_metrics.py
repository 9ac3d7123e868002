"""What is measured of admission."""

from prometheus_client import Counter, Histogram

from app.telemetry.metrics import REGISTRY

ADMISSION_SECONDS = Histogram(
    "pumice_admission_seconds",
    "Time from an AdmissionReview's arrival to its answer, by webhook.",
    ("path",),
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0),
    registry=REGISTRY,
)
ADMISSION_ANSWERS = Counter(
    "pumice_admission_answers",
    "Answers to AdmissionReviews by webhook and outcome.",
    ("path", "outcome"),
    registry=REGISTRY,
)
