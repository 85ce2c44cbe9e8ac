"""The project's own policies as a referee asks for them: one factory a question.

A factory imports and builds everything before the first question, so that a referee's clock sees
the decision alone. What `untuned` is to reach stands in `INFERBUS_ARENA_OBJECTIVE`, in the words of
the annotation `inferbus.dev/objective`. Invariant: what answers is the code that the services run.
"""

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from inferbus_optimizer.policy_exact import Choice, cheapest
from tests.bench.endpoint_choice import PredictedTtft, SharedPredictedTtft
from tests.bench.untuned_fleet import Untuned

OBJECTIVE = os.environ.get("INFERBUS_ARENA_OBJECTIVE", "wait=2s@99.5%")
STRICTER = "wait=2s@99.9%"

MixSolver = Callable[[Mapping[str, Any]], list[int]]
"""From a mix, as the referee writes it, to the replicas of each type in its order."""


def mix() -> MixSolver:
    """The placement of replicas on a mix of accelerators.

    The solver raises `ValueError` for a demand that all replicas together don't serve.
    """
    return _solve


def _solve(document: Mapping[str, Any]) -> list[int]:
    choices = [
        Choice(
            cost=kind["cost"],
            capacity=Fraction(kind["capacity"]),
            min_replicas=kind["min"],
            max_replicas=kind["max"],
        )
        for kind in document["types"]
    ]
    found = cheapest(choices, Fraction(document["demand"]))
    if found is None:
        raise ValueError(f"mix {document['id']} cannot serve {document['demand']}")
    return list(found.replicas)


def untuned(startup_s: int) -> Untuned:
    """The default for everything, with the objective that the environment names."""
    return Untuned(startup_s, OBJECTIVE)


def untuned_999(startup_s: int) -> Untuned:
    """The same with 99.9 % instead of 99.5 %."""
    return Untuned(startup_s, STRICTER)


def predicted_ttft(endpoints: int) -> PredictedTtft:
    """The router's default choice of an endpoint."""
    return PredictedTtft(endpoints)


def predicted_ttft_of_four(endpoints: int) -> SharedPredictedTtft:
    """The same of four routers that tell each other what they sent."""
    return SharedPredictedTtft(endpoints, 4)
