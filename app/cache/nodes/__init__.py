"""What every node has, and what is taken of it."""
