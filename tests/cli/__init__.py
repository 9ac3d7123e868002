"""Tests of app.cli."""
