"""Helpers of the tests of rolling updates."""

from typing import Any

from workload_builders import role, serving
from workload_world import World

Steps = list[tuple[str, str, tuple[int, int, int, int], str]]


def rolled(groups: int, image: str = "b", **knobs: Any) -> World:
    """A settled fleet of image `a` that is told to run another image."""
    world = World(serving(groups, rollout=knobs))
    world.settle()
    world.history.clear()
    world.apply(serving(groups, [role(image=image)], rollout=knobs))
    world.reconcile()
    return world


def picture(world: World, groups: int) -> str:
    """`AR` old and running, `AD` old and deleting, `BC` new and starting, `--` gone."""
    states = []
    for ordinal in range(groups):
        name = f"x-{ordinal}-prefill-0-0"
        if name not in world.pod_names():
            states.append("--")
            continue
        ready = world.pod(name)["status"]["phase"] == "Running"
        state = "D" if world.deleting(name) else "R" if ready else "C"
        states.append(world.image(name).upper() + state)
    return " ".join(states)


def happens(world: World, event: str) -> None:
    """`g3 gone` or `g3 ready`, and the reconciler looks."""
    group, what = event.split()
    name = f"x-{group[1:]}-prefill-0-0"
    if what == "gone":
        world.finish_deletions(name)
    else:
        world.start(name)
    world.reconcile()


def walk(world: World, groups: int, steps: Steps) -> None:
    """Each step: what happens, the fleet then, its counts, and the condition that is True."""
    old, new = world.status["currentRevision"], world.status["updateRevision"]
    for event, expected, counts, condition in steps:
        if event:
            happens(world, event)
        assert (event, picture(world, groups)) == (event, expected)
        assert (event, world.counts()) == (event, counts)
        assert (event, world.true_conditions()) == (event, [condition])
        assert world.status["updateRevision"] == new
        if condition != "Available":
            assert world.status["currentRevision"] == old


UPDATING, DONE = "UpdateInProgress", "Available"
