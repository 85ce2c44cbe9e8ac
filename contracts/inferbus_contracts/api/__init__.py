"""Requests and replies over core NATS: the object API and the console's queries."""
