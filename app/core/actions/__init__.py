"""The actions of a cycle, and what they share (see :mod:`app.core.actions.cycle`)."""
