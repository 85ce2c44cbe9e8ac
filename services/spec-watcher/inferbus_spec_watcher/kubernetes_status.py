"""Statuses on a cluster: through the status subresource, only where they say something else.

Invariants: what is patched is the difference to the status as the API server held it, so that what
other writers put there stays; a status of which the server keeps less than was sent (a CRD older
than this release) is sent once and not for ever. The turns of a status are told as Events.
"""

import logging
from collections.abc import Mapping
from typing import Any

from inferbus_contracts.canonical import digest
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.client import KubeClient
from inferbus_spec_watcher.kubernetes_calls import Calls
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_merge import merge_patch
from inferbus_spec_watcher.policy_notices import notices

log = logging.getLogger("inferbus.spec-watcher")

COMPONENT = "inferbus-spec-watcher"
"""Who tells the Events."""

Status = Mapping[str, Any]


class Statuses:
    """The statuses that this instance writes."""

    def __init__(self, client: KubeClient, calls: Calls) -> None:
        self._client = client
        self._calls = calls
        self._cut: dict[ObjectKey, tuple[str, str]] = {}
        """Digests of what was sent and of what the API server made of it, where they differ."""

    async def write(self, key: ObjectKey, stored: ClusterObject, status: Status) -> None:
        """Make the object say `status`; raises `ContestedError` when it was changed meanwhile."""
        before: Status = stored.object.get("status") or {}
        patch = merge_patch(before, status)
        if not patch or self._cut.get(key) == (digest(dict(status)), digest(dict(before))):
            return
        answer = await self._calls.patch_status(key, stored, patch)
        after: Status = answer.get("status") or {}
        self._cut.pop(key, None)
        if merge_patch(after, status):
            self._cut[key] = (digest(dict(status)), digest(dict(after)))
            log.warning("the CRD keeps only a part of a status", extra={"object": str(key)})
        await self._tell(answer, before, after)

    async def _tell(self, document: Mapping[str, Any], before: Status, after: Status) -> None:
        """Events are a courtesy: what can't be told doesn't hold up the work."""
        for notice in notices(before, after):
            try:
                await self._client.record_event(
                    document,
                    notice.reason,
                    notice.message,
                    component=COMPONENT,
                    warning=notice.warning,
                )
            except ProblemsError as error:
                log.warning("an event could not be told", extra={"problem": str(error)})
