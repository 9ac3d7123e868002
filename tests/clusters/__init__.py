"""Clusters to test on: the stock control plane as processes, and one client for every cluster.

`binaries` compiles the stock programs once into a cache folder, `controlplane` starts and ends
them, `client` speaks to any API server, `cluster` is what a behaviour test may rely on wherever it
runs, `report` counts the tests that ran on each.
"""
