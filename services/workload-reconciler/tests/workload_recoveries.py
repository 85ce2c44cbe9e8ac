"""Helpers of the tests of recovery."""

from typing import Any

from workload_builders import role, serving
from workload_world import World

TWO_ROLES = [role(workers=1), role("decode")]


def settled(policy: str = "RoleRecreate", groups: int = 1, **fields: Any) -> World:
    world = World(serving(groups, TWO_ROLES, recoveryPolicy=policy, **fields))
    world.settle()
    return world


def uids(world: World) -> dict[str, str]:
    return {name: world.uid(name) for name in world.pod_names()}


def replaced(before: dict[str, str], world: World) -> set[str]:
    after = uids(world)
    assert after.keys() == before.keys()
    return {name for name in after if after[name] != before[name]}


PREFILL = {"x-0-prefill-0-0", "x-0-prefill-0-1"}


DECODE = {"x-0-decode-0-0"}
