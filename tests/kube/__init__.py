"""Tests of app.kube."""
