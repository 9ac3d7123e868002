"""Admission rules: pure functions on parsed objects."""
