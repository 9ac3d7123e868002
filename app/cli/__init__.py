"""The programs of the command line: ``pumice`` and its subcommands, and ``vcctl``."""
