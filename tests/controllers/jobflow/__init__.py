"""The jobflow and jobtemplate controllers."""
