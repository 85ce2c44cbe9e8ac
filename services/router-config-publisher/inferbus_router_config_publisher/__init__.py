"""Joins routes, model servers and endpoints into the routers' tables."""
