"""The HTTP edge: decode, call a use case, encode. No rule lives here."""
