"""Turns samples and demand into replica decisions that explain themselves."""
