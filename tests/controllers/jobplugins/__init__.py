"""Tests of the job plugins: what each adds to pods, and the objects it makes."""
