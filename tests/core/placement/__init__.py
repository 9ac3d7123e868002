"""Tests of where tasks go."""
