"""The hyperNode controller: how many nodes each has, and HyperNodes made from labels of nodes."""
