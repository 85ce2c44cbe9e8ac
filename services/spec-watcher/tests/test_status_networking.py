"""Status of ModelRoutes and ModelServers: what is said of this one (routing spec, item 35)."""

import pytest
from status_world import World

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.keys import ObjectKey
from tests.support.platform import model_manifests

_, SERVER, ROUTE = model_manifests("chat")


def fact(world: World, key: ObjectKey, uid: str = "", generation: int = 1, ready: int = 2) -> None:
    world.resolved[key] = RoutesResolved(
        uid=uid or world.objects[key].uid,
        generation=generation,
        conditions=[
            condition("Accepted", True, "Accepted"),
            condition("ResolvedRefs", True, "ResolvedRefs"),
            condition("Ready", ready > 0, "EndpointsReady" if ready else "NoEndpoints"),
        ],
        endpoints=3,
        ready_endpoints=ready,
    )


@pytest.fixture(params=[SERVER, ROUTE], ids=["server", "route"])
def resolved(request: pytest.FixtureRequest) -> tuple[World, ObjectKey]:
    world = World()
    return world, world.put(request.param)


def test_nothing_is_said_before_it_was_resolved(resolved: tuple[World, ObjectKey]) -> None:
    world, key = resolved
    assert world.status(key) == {}


def test_conditions_and_counts_are_the_publishers(resolved: tuple[World, ObjectKey]) -> None:
    world, key = resolved
    fact(world, key)
    status = world.status(key)
    assert (status["endpoints"], status["readyEndpoints"]) == (3, 2)
    assert world.conditions(key) == {
        "Accepted": ("True", "Accepted"),
        "Ready": ("True", "EndpointsReady"),
        "ResolvedRefs": ("True", "ResolvedRefs"),
    }
    fact(world, key, ready=0)
    assert world.conditions(key)["Ready"] == ("False", "NoEndpoints")
    assert world.status(key)["readyEndpoints"] == 0


def test_what_was_said_of_a_namesake_before_it_is_not_repeated(
    resolved: tuple[World, ObjectKey],
) -> None:
    world, key = resolved
    fact(world, key, uid="the one before")
    assert world.status(key) == {}


def test_what_is_observed_is_the_generation_that_was_resolved(
    resolved: tuple[World, ObjectKey],
) -> None:
    world, key = resolved
    world.objects[key].object["metadata"]["generation"] = 2
    fact(world, key, generation=1)
    status = world.status(key)
    assert status["observedGeneration"] == 1
    assert {one["observedGeneration"] for one in status["conditions"]} == {1}
