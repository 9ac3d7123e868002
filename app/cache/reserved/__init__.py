"""Room reserved for members and slots: how it is given, kept, taken back and lost."""
