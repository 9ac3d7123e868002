"""Kubernetes objects as JSON text to model values, one module per kind.

Each module holds the structs of the fields that are read, nothing else of an object is looked at,
and a ``decode_*`` function that turns text into a value or raises `DecodeError`. Absent and null
mean the same everywhere, as they do to the API server.
"""
