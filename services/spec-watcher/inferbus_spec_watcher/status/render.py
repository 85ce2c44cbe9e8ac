"""`render`: which kinds have a status written here, and the whole status from its part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inferbus_contracts.conditions import stamp
from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import (
    AUTOSCALING_POLICY,
    AUTOSCALING_POLICY_BINDING,
    BACKEND_RUNTIME,
    EXTERNAL_MODEL_PROVIDER,
    INFERENCE_SERVICE,
    MODEL_BOOSTER,
    MODEL_ROUTE,
    MODEL_SERVER,
    MODEL_SERVING,
    OPEN_MODEL,
    PLAYGROUND,
)
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.status.accepted import accepted, refused
from inferbus_spec_watcher.status.booster import booster_status
from inferbus_spec_watcher.status.inference import inference_status
from inferbus_spec_watcher.status.networking import networking_status, provider_status
from inferbus_spec_watcher.status.part import StatusPart
from inferbus_spec_watcher.status.scaling import scaling_status
from inferbus_spec_watcher.status.view import View

Renderer = Callable[[ObjectKey, StoredObject, View], StatusPart | None]


def _accepted_alone(_: ObjectKey, stored: StoredObject, __: View) -> StatusPart:
    return StatusPart((accepted(stored.object),))


def _with_accepted(renderer: Renderer) -> Renderer:
    def render(key: ObjectKey, stored: StoredObject, view: View) -> StatusPart | None:
        part = renderer(key, stored, view)
        if part is None:
            return _accepted_alone(key, stored, view)
        return replace(part, conditions=(accepted(stored.object), *part.conditions))

    return render


def _refused(problems: Sequence[Problem]) -> StatusPart:
    """What else is known of the object is of the spec that was accepted last."""
    return StatusPart((refused(problems),))


_RENDERERS: Mapping[str, Renderer] = {
    MODEL_BOOSTER: _with_accepted(booster_status),
    PLAYGROUND: _with_accepted(inference_status),
    INFERENCE_SERVICE: _with_accepted(inference_status),
    MODEL_ROUTE: networking_status,
    MODEL_SERVER: networking_status,
    AUTOSCALING_POLICY: scaling_status,
    AUTOSCALING_POLICY_BINDING: scaling_status,
    MODEL_SERVING: _accepted_alone,
    OPEN_MODEL: _accepted_alone,
    BACKEND_RUNTIME: _accepted_alone,
    EXTERNAL_MODEL_PROVIDER: _with_accepted(provider_status),
}
STATUS_KINDS = frozenset(_RENDERERS)
"""Kinds whose status is written here, in whole or in part."""


def render(key: ObjectKey, stored: StoredObject, view: View, now_ms: int) -> dict[str, Any] | None:
    """The status that an object should have, what others wrote in it included.

    None when there is nothing to say yet. Equal to the stored one when nothing changed.
    """
    problems = view.refusal(key)
    part = _refused(problems) if problems else _RENDERERS[key.kind](key, stored, view)
    if part is None:
        return None
    previous = stored.object.get("status") or {}
    generation = stored.generation if part.generation is None else part.generation
    conditions = stamp(
        (one for one in previous.get("conditions") or () if one["type"] not in part.withdrawn),
        part.conditions,
        generation,
        now_ms,
        occasional=part.occasional,
    )
    kept = {name: value for name, value in previous.items() if name not in part.fields}
    told = {name: value for name, value in part.fields.items() if value is not None}
    seen = {} if part.generation is None else {"observedGeneration": generation}
    return {**kept, **told, **seen, "conditions": conditions}
