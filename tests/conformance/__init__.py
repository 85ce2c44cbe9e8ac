"""Vectors of reference implementations, run against the pure cores."""
