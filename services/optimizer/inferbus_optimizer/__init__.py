"""Splits a total demand over a mix of targets at the least cost."""
