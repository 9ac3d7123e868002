"""Tests: one folder per package of app, plus clusters to run on, scenarios, e2e and benchmarks."""
