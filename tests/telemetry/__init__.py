"""Tests of app.telemetry."""
