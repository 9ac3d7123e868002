"""Asking the HTTP extender (:mod:`app.model.http_extender`) in the background."""
