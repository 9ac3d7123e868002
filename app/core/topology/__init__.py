"""The tree of HyperNodes: which nodes lie below each, as names and labels change."""
