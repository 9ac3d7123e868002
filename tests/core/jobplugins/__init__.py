"""Tests of what is judged of job plugins without making an object."""
