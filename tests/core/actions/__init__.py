"""Tests of :mod:`app.core.actions`."""
