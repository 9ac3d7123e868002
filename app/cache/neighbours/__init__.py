"""Pods by node, as rules about other pods see them."""
