"""The HyperNode controller and its discovery."""
