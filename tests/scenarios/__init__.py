"""Behaviour that users see, the same on the sandbox and on the stock control plane."""
