"""Tests of the live cluster state."""
