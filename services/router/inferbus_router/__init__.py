"""OpenAI-compatible data plane on uvloop protocols."""
