"""Locations of models and caches as a ModelBooster writes them (modelbooster spec 1.5 rule 13).

Pure text: nothing here looks at a disk or a cluster.
"""

import posixpath

_PVC = "pvc://"


def has_parent_segment(uri: str) -> bool:
    """A `..` stands between slashes."""
    return ".." in uri.partition("://")[2].split("/")


def claim_of(cache_uri: str | None) -> str | None:
    """The volume claim of a pvc:// cache, slashes at its ends left out; None for other caches."""
    if cache_uri is None or not cache_uri.startswith(_PVC):
        return None
    return cache_uri.removeprefix(_PVC).strip("/")


def is_within_claim(model_uri: str, claim: str) -> bool:
    """A model on a claim lies on `claim`; a model from elsewhere may be cached on any."""
    if not model_uri.startswith(_PVC):
        return True
    path = posixpath.normpath(f"/{model_uri.removeprefix(_PVC)}").lstrip("/")
    return path == claim or path.startswith(f"{claim}/")
