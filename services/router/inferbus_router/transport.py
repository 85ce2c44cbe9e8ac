"""How endpoints are spoken to, and whose certificates are believed there.

Invariant: endpoints that are spoken to differently share no connection.
"""

from enum import StrEnum
from typing import NamedTuple


class Trust(StrEnum):
    """Whose certificates are believed."""

    FLEET = "fleet"
    """Those that the fleet's own authorities signed."""
    PUBLIC = "public"
    """Those of services outside."""
    ANYBODY = "anybody"
    """All."""


class Transport(NamedTuple):
    """How endpoints are spoken to."""

    protocol: str
    """`http` or `https`."""
    trust: Trust = Trust.FLEET
