"""What can be set on each process: one frozen class per process, from flags and the environment."""
