"""What generated ModelServers and ModelRoutes of both platforms have in common."""

from typing import Any

RETRY: dict[str, Any] = {"attempts": 5, "retryInterval": "0s"}
"""Another endpoint is tried at once (modelbooster spec 2.11)."""
