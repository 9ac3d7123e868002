"""JSON and YAML to values and back: the only place that knows how either looks.

`objects` reads what the API server stores, `extender` speaks with kube-scheduler, `patches` writes
what changes, `quantity` and `times` are the notations that all of them share. What cannot be read
is a `DecodeError` that names the field.
"""
