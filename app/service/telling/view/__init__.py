"""The whole state as rows, for the page and for programs that follow it live."""
