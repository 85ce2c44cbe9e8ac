"""Fetches model artifacts once per node: resumable, checked, atomic."""
