"""Admits, defaults and expands manifests; the only writer of objects and of spec.changed."""
