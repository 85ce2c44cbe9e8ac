"""Asking the platform's processes whether they can work."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable

TIMEOUT_SECONDS = 2.0


def readiness(health_url: str) -> str:
    """Why a process isn't ready; empty when it is."""
    try:
        with urllib.request.urlopen(f"{health_url}/readyz", timeout=TIMEOUT_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return _missing(error.read())
    except OSError as error:
        return f"doesn't answer ({error})"


def unready(health_urls: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of (name, URL) pairs those that aren't ready, with the reason."""
    reasons = {name: readiness(url) for name, url in health_urls}
    return {name: reason for name, reason in reasons.items() if reason}


def _missing(body: bytes) -> str:
    try:
        missing = json.loads(body)["missing"]
        return "; ".join(f"{what}: {why}" for what, why in missing.items())
    except (ValueError, KeyError, TypeError, AttributeError):
        return "not ready"
