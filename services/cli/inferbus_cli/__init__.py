"""The inferbus command."""
