"""Tests of the reconcilers."""
