"""Which pods go for a gang, and what proves that they must.

What protects pods is in :mod:`app.core.protection`.
"""
