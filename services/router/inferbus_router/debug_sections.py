"""What goes on in the router beside its configuration: queues, limits, caches, the scheduler.

Invariant: only reads; what grows with clients is cut off at `MOST_ROWS`.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from inferbus_router.limits import Limiter
from inferbus_router.scheduling import Scheduling
from inferbus_router.shared_limits import SharedLimiter
from inferbus_router.state import RouterState

MOST_ROWS = 1000

Section = Callable[[], Any]
"""Gives what JSON can hold."""


def debug_sections(state: RouterState, scheduling: Scheduling) -> Mapping[str, Section]:
    """By name."""
    return {
        "held": lambda: _held(state),
        "limits": lambda: _limits(state),
        "prefix_index": lambda: _prefix_index(state, scheduling),
        "scheduler": lambda: _scheduler(state),
        "table": lambda: {"revision": state.table.revision, "digest": state.table.digest},
    }


def _held(state: RouterState) -> dict[str, Any]:
    """Requests that wait for a model that starts."""
    now_ms = state.now_ms()
    waiting = [
        {
            "target": str(pending.target),
            "model": pending.data.model,
            "waiting": pending.data.waiting,
            "oldestMs": now_ms - pending.data.since_ms,
        }
        for pending in state.hold.pending("")
    ]
    return {"requests": len(state.hold), "targets": waiting}


def _limits(state: RouterState) -> dict[str, Any]:
    """Tokens that are left under each limit; negative while in debt."""
    now_ms = state.now_ms()
    limiters = state.ledger.limiters.items()
    return {f"{key.namespace}/{key.name}": _limit(each, now_ms) for key, each in limiters}


def _limit(limiter: Limiter, now_ms: int) -> dict[str, Any]:
    local = limiter.local if isinstance(limiter, SharedLimiter) else limiter
    return {
        "declared": limiter.declared.to_dict(),
        "holders": [
            {"name": name, "principal": principal, "inputTokens": input_, "outputTokens": output}
            for (name, principal), input_, output in islice(local.left(now_ms), MOST_ROWS)
        ],
    }


def _prefix_index(state: RouterState, scheduling: Scheduling) -> dict[str, Any]:
    """Blocks that endpoints are thought to hold: the default rule's, and each plugin's."""
    plugins = {
        cache.name: {
            getattr(endpoint, "pod", ""): blocks
            for endpoint, blocks in islice(cache.owners.blocks_by_endpoint().items(), MOST_ROWS)
        }
        for cache in scheduling.caches()
    }
    return {"default": {"blocks": len(state.fleet.prefixes)}, "plugins": plugins}


def _scheduler(state: RouterState) -> dict[str, Any]:
    """What chooses endpoints."""
    scheduler = state.scheduler
    if scheduler is None:
        return {"name": "predicted-time-to-first-token"}
    pipeline = scheduler.pipeline
    return {
        "name": "plugins",
        "filters": [plugin.name for plugin in pipeline.filters],
        "scores": [{"name": plugin.name, "weight": weight} for plugin, weight in pipeline.scores],
    }
