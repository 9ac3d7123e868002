"""The vcjob controller, on an API server of the tests and in virtual time."""
