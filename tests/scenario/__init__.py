"""Whole platforms: what a user sees, kills and restarts included."""
