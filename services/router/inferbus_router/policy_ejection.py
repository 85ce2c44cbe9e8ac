"""Which endpoints are left alone for a while because requests to them keep failing.

Passive outlier ejection with half-open probes (routing spec, defect 16). Invariant: an endpoint
whose last request succeeded is never ejected, and an ejected one gets at most one request at a
time, as a probe, once its time is over.
"""

EJECT_AFTER_FAILURES = 3
"""Consecutive failures that eject."""
BASE_EJECTION_MS = 2_000
MAX_EJECTION_MS = 60_000


class Health:
    """What the last requests to one endpoint told about it."""

    __slots__ = (
        "_ejections",
        "abandonments",
        "all_ejections",
        "all_failures",
        "ejected_until_ms",
        "failures",
        "probing",
        "successes",
    )

    def __init__(self) -> None:
        self.failures = 0
        """Consecutive."""
        self.ejected_until_ms = 0
        """0: not ejected."""
        self.probing = False
        """A probe is on its way."""
        self.successes = self.all_failures = self.abandonments = self.all_ejections = 0
        """Ever."""
        self._ejections = 0

    def admits(self, now_ms: int) -> bool:
        """True where a request may go: not ejected, or due for a probe and none is running."""
        if not self.ejected_until_ms:
            return True
        return now_ms >= self.ejected_until_ms and not self.probing

    def started(self) -> None:
        """A request goes there; to an ejected endpoint it is the probe."""
        if self.ejected_until_ms:
            self.probing = True

    def abandoned(self) -> None:
        """A request ended without telling anything about the endpoint, e.g. its client left."""
        self.probing = False
        self.abandonments += 1

    def succeeded(self) -> None:
        """The endpoint answered: it is back in full."""
        self.successes += 1
        if self.failures or self.ejected_until_ms:
            self.failures = 0
            self.ejected_until_ms = 0
            self._ejections = 0
            self.probing = False

    def failed(self, now_ms: int) -> None:
        """Connection refused or broken, garbage, a timeout, or 502, 503 or 504.

        Each ejection in a row is twice as long as the one before, up to `MAX_EJECTION_MS`.
        """
        self.failures += 1
        self.all_failures += 1
        was_probe, self.probing = self.probing, False
        already_out = bool(self.ejected_until_ms) and not was_probe
        if already_out or (not was_probe and self.failures < EJECT_AFTER_FAILURES):
            return
        length_ms = min(MAX_EJECTION_MS, BASE_EJECTION_MS << min(self._ejections, 10))
        self.ejected_until_ms = now_ms + length_ms
        self._ejections += 1
        self.all_ejections += 1
