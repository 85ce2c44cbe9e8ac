"""Watching whether the NATS server still stores what it is given.

Invariant: only a server that answers, and says itself that it isn't well, counts as unwell.
"""

import json
import shutil
import urllib.error
import urllib.request

from inferbus_cli.platform.directory import PlatformDirectory
from inferbus_cli.platform.embedded_nats import monitor_url
from inferbus_cli.platform.policy_event_log import LogHealth, observed, should_start_anew
from inferbus_contracts.errors import ErrorCode, Problem

CHECK_SECONDS = 2.0
_ANSWER_SECONDS = 1.0


class EventLogWatch:
    """One platform's; times are monotonic seconds."""

    def __init__(self, directory: PlatformDirectory) -> None:
        self._directory = directory
        self._health = LogHealth()
        self._checked = 0.0

    def stuck(self, life: int, now: float) -> Problem | None:
        """Why the server with that pid has to be started anew; None while it needn't."""
        if now - self._checked < CHECK_SECONDS:
            return None
        self._checked = now
        fault = self._fault()
        if fault is None:
            return None
        self._health = observed(self._health, life, not fault, now)
        free_bytes = shutil.disk_usage(self._directory.nats).free
        if not should_start_anew(self._health, now, free_bytes):
            return None
        return Problem(
            code=ErrorCode.BUS_REFUSED,
            message=f"the NATS server stores nothing any more: {fault}",
            file=str(self._directory.nats),
            remedy="it is started anew; nothing acknowledged is lost",
        )

    def _fault(self) -> str | None:
        """What the server says is wrong; empty: nothing; None: it doesn't answer."""
        url = monitor_url(self._directory)
        if url is None:
            return None
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=_ANSWER_SECONDS):
                return ""
        except urllib.error.HTTPError as error:
            return _said(error.read()) or error.reason
        except OSError:
            return None


def _said(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return ""
