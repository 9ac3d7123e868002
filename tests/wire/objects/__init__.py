"""Tests of objects as JSON."""
