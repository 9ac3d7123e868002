"""From what the watches show to the cache."""
