"""Pure values: what the cluster is, what was asked and what was decided.

Imports numpy and the standard library only. Values are frozen; those that hold arrays or mappings
compare by identity (``eq=False``) and are replaced, never mutated.
"""
