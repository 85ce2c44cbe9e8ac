"""A reconciler killed at every step, one after the other: the end is the same.

Gone through are the moments before the first step that lasts (a write to the API server or to the
bus), between any two, and after the last one. What a step is: `tests/support/kube_lives.py`.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from tests.fakes.kubernetes.crds import pod_group_definition
from tests.support.kube import KubeServer
from tests.support.kube_fleet import install_definitions
from tests.support.kube_stories import NAME, Story, decider
from tests.support.nats import NatsServer

Document = dict[str, Any]
Change = Callable[[Story], Awaitable[None]]


def template(image: str) -> Document:
    return {"metadata": {}, "spec": {"containers": [{"name": "engine", "image": image}]}}


def role(name: str, workers: int = 0, replicas: int = 1, image: str = "a", **more: Any) -> Document:
    found = {
        "name": name,
        "replicas": replicas,
        "workerReplicas": workers,
        "entryTemplate": template(image),
        **more,
    }
    return {**found, "workerTemplate": template(image)} if workers else found


def serving(replicas: int, *roles: Document, **spec: Any) -> Document:
    return {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "metadata": {"name": NAME},
        "spec": {"replicas": replicas, "template": {"roles": list(roles)}, **spec},
    }


async def nothing(_: Story) -> None:
    pass


async def fail_worker(story: Story) -> None:
    (pod,) = [
        one for one in await story.cluster.pods() if one["metadata"]["name"] == f"{NAME}-1-main-0-1"
    ]
    assert (await story.cluster.fail(pod)).ok


SURGE = {
    "type": "ServingGroupRollingUpdate",
    "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 1},
}
BY_ROLE = {"type": "RoleRollingUpdate"}


class Scenario(NamedTuple):
    """A workload at rest (None: it only comes), and what happens to it."""

    before: Document
    change: Change
    is_new: bool = False
    groups: int = 2


SCENARIOS = {
    "create": Scenario(serving(2, role("main", workers=1), role("other")), nothing, is_new=True),
    "scale up": Scenario(serving(1, role("main", workers=1)), lambda s: s.change(replicas=3)),
    "scale down": Scenario(serving(3, role("main", workers=1)), lambda s: s.change(replicas=1)),
    "roll out with surge": Scenario(
        serving(2, role("main", workers=1), rolloutStrategy=SURGE),
        lambda s: s.change(template={"roles": [role("main", workers=1, image="b")]}),
    ),
    "roll out a role": Scenario(
        serving(1, role("main", replicas=2), role("other"), rolloutStrategy=BY_ROLE),
        lambda s: s.change(
            template={"roles": [role("main", replicas=2, image="b"), role("other")]}
        ),
    ),
    "recover": Scenario(serving(2, role("main", workers=1)), fail_worker),
    "delete": Scenario(serving(1, role("main", workers=1)), lambda s: s.remove()),
    "decide": Scenario(serving(1, role("main")), lambda s: s.decide(2)),
    "decide for a role": Scenario(serving(1, role("main")), lambda s: s.decide(2, "main")),
}


def _pods(creations: Counter[str]) -> Counter[str]:
    return Counter({name: times for name, times in creations.items() if name.startswith("pods ")})


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_reconciler_killed_at_any_step_leaves_the_same_end(
    nats_server: NatsServer, fake_kube_server: KubeServer, name: str
) -> None:
    scenario = SCENARIOS[name]
    fake = fake_kube_server.fake
    assert fake is not None
    fake.install(pod_group_definition())
    async with fake_kube_server.calls() as calls, decider(nats_server) as deciding:
        await install_definitions(calls)

        async def told(limit: int | None) -> tuple[Story, int]:
            """The story with a death after so many steps, and how many steps that life made."""
            fake.record.clear()
            story = Story(nats_server, fake_kube_server, calls, deciding)
            await story.begin(scenario.before)
            if not scenario.is_new:
                await story.live()
            await scenario.change(story)
            steps = await story.live(limit)
            if steps.ended.is_set():
                await story.live()
            return story, len(steps.made)

        reference, number = await told(None)
        end, creations = await reference.end(), reference.creations()
        assert reference.unwanted() == []
        for limit in range(number):
            story, made = await told(limit)
            assert made == limit, "it was to die there"
            assert story.unwanted() == [], f"after step {limit}"
            assert _pods(story.creations()) == _pods(creations), f"after step {limit}"
            assert story.creations() <= creations, f"after step {limit}"
            assert await story.end() == end, f"after step {limit}"
        print(f"{name}: killed before and after each of {number} steps")  # noqa: T201
