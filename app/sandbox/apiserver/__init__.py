"""The Kubernetes API in memory.

What flows: bytes -> ``http`` (routing, content types) -> ``operations`` (verbs, admission,
preconditions) -> ``store`` (revisions, history) -> watchers. Kinds are rows of a ``registry``;
a CustomResourceDefinition that is stored becomes a row.

Invariant: a document handed to the store is never changed again; every write stores a new one.
Readers, watchers and the history therefore share documents without copying them.
"""
