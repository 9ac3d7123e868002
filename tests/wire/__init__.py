"""Tests of app.wire."""
