"""Scrapes engine metrics pages and emits one sample per policy target."""
