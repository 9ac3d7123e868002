"""End to end: the stock control plane, our processes, and what a user would see."""
