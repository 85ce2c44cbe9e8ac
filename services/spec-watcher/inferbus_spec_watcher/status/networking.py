"""Status of what routing is about: what the router-config-publisher says of it.

Invariant: nothing is told of an object that was said of a namesake before it.
"""

from dataclasses import replace

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.status.part import StatusPart
from inferbus_spec_watcher.status.view import View


def networking_status(key: ObjectKey, stored: StoredObject, view: View) -> StatusPart | None:
    """None until it was resolved, or while only a namesake before it was."""
    fact = view.resolved(key)
    if fact is None or fact.uid != stored.uid:
        return None
    return StatusPart(
        tuple(fact.conditions),
        {"endpoints": fact.endpoints, "readyEndpoints": fact.ready_endpoints},
        fact.generation,
    )


def provider_status(key: ObjectKey, stored: StoredObject, view: View) -> StatusPart | None:
    """Likewise; a provider's address is no endpoint to be counted."""
    part = networking_status(key, stored, view)
    return None if part is None else replace(part, fields={})
