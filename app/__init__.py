"""Pumice."""
