"""The jobflow controller: jobs from templates, one after the other; and the templates' own."""
