"""What generated ModelServers and ModelRoutes of both platforms have in common."""

from typing import Any

from inferbus_contracts.resources.annotations import PREFIX

OWNED_BY = f"{PREFIX}owned-by"
"""On a ModelRoute: `owned_by` of its model in `/v1/models` (ruling "owner")."""

CREATED_AT = f"{PREFIX}created-at"
"""On a ModelRoute: when its model was created, RFC 3339 (llmaz spec 1.1)."""

RETRY: dict[str, Any] = {"attempts": 5, "retryInterval": "0s"}
"""Another endpoint is tried at once (modelbooster spec 2.11)."""
