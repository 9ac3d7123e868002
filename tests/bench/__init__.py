"""Benchmarks: they print ratios and are not collected by the test run."""
