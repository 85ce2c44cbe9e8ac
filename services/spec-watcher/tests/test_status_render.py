"""Status of any kind: written once, and what others wrote in it stays."""

from typing import Any

import pytest
from expansion_builders import booster, open_model, playground, runtime, service
from hypothesis import given
from hypothesis import strategies as st
from status_world import EXPANDED, NOW_MS, World

from inferbus_contracts.conditions import condition
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.scaling import Mode
from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.status.render import STATUS_KINDS, render
from tests.support.platform import model_manifests

PROVIDER = {
    "apiVersion": "networking.serving.volcano.sh/v1alpha1",
    "kind": "ExternalModelProvider",
    "metadata": {"name": "hub"},
    "spec": {"providerType": "OpenAI", "baseURL": "https://example.com/v1"},
}
DOCUMENTS = [
    *model_manifests("chat", scaling=(1, 5)),
    booster(),
    playground(),
    service("svc"),
    open_model(),
    runtime(),
    PROVIDER,
]
THEIRS = ("Available", "Theirs", "Zeta")
"""Types of conditions that other writers may use."""


def full_world() -> World:
    """One object of each kind."""
    world = World()
    for document in DOCUMENTS:
        world.put(document)
    return world


def test_every_kind_that_has_a_status_is_tried_here() -> None:
    assert {key.kind for key in full_world().objects} == STATUS_KINDS


KEYS = sorted(full_world().objects)
keys = st.sampled_from(KEYS)
words = st.sampled_from(["x", "Y", "why"])
reasons = st.builds(condition, words, st.booleans(), words, words)
expansions = st.builds(
    lambda holds, reason, more: (condition("Expanded", holds, reason), *more),
    st.booleans(),
    words,
    st.lists(
        st.builds(condition, st.sampled_from(["RouteTaken", "Failed"]), st.just(True), words),
        unique_by=lambda one: one.type,
    ),
)
others = st.fixed_dictionaries(
    {
        "theirs": st.integers(),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(THEIRS),
                    "status": st.sampled_from(["True", "False", "Unknown"]),
                    "reason": words,
                    "message": words,
                    "lastTransitionTime": st.just("2020-01-01T00:00:00Z"),
                }
            ),
            unique_by=lambda one: one["type"],
        ),
    }
)


def tell(world: World, data: st.DataObject) -> None:
    """Something becomes known of some object."""
    key = data.draw(keys)
    what = data.draw(st.sampled_from(["expanded", "resolved", "decided", "gone", "generation"]))
    if key not in world.objects:
        return
    stored = world.objects[key]
    if what == "expanded":
        world.expanded(key, *data.draw(expansions))
    elif what == "resolved":
        told = data.draw(st.lists(reasons, unique_by=lambda one: one.type))
        fact = RoutesResolved(uid=stored.uid, generation=stored.generation, conditions=told)
        world.resolved[key] = fact
    elif what == "decided":
        world.decided(key, data.draw(st.integers(0, 9)), data.draw(st.sampled_from(Mode)))
    elif what == "gone":
        del world.objects[key]
    else:
        stored.object["metadata"]["generation"] += 1


@given(st.data())
def test_rendering_again_changes_nothing_and_all_else_stays(data: st.DataObject) -> None:
    world = full_world()
    key = data.draw(keys)
    before = data.draw(others)
    world.say(key, before)
    for step in range(data.draw(st.integers(1, 4))):
        tell(world, data)
        if key not in world.objects:
            return
        now_ms = NOW_MS + step * 1000
        status = world.status(key, now_ms)
        again = render(key, world.objects[key], world.view, now_ms + 60_000)
        assert again in (None, status)
    assert status["theirs"] == before["theirs"]
    mine = written_types(world, key)
    stays = {one["type"]: one for one in status.get("conditions", ())}
    for one in before["conditions"]:
        if one["type"] not in mine:
            assert stays[one["type"]] == one


def written_types(world: World, key: ObjectKey) -> set[str]:
    """Types that are told here of an object that nobody else writes to."""
    told = world.resolved[key].conditions if key in world.resolved else ()
    own = {"Available"} if key.kind in ("Playground", "Service") else set()
    return own | {one.type for one in told}


@given(st.data())
def test_a_time_changes_if_and_only_if_its_status_does(data: st.DataObject) -> None:
    world = full_world()
    key = data.draw(keys)
    before: dict[str, Any] = {}
    for step in range(3):
        tell(world, data)
        if key not in world.objects:
            return
        now = {
            one["type"]: one
            for one in world.status(key, NOW_MS + step * 1000).get("conditions", ())
        }
        for type_ in before.keys() & now.keys():
            same_status = before[type_]["status"] == now[type_]["status"]
            same_time = before[type_]["lastTransitionTime"] == now[type_]["lastTransitionTime"]
            assert same_status == same_time
        before = now


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_types_are_told_once_and_in_order(key: ObjectKey) -> None:
    world = full_world()
    world.expanded(key, EXPANDED)
    types = [one["type"] for one in world.status(key).get("conditions", ())]
    assert types == sorted(set(types))


def test_what_looks_doubtful_is_told_with_accepted() -> None:
    world = World()
    document = model_manifests("chat", scaling=(1, 5))[-1]
    document["spec"]["homogeneousTarget"]["target"]["targetRef"]["kind"] = "Deployment"
    accepted = next(
        one for one in world.status(world.put(document))["conditions"] if one["type"] == "Accepted"
    )
    assert (accepted["status"], accepted["reason"]) == ("True", "AcceptedWithDoubts")
    assert "targetRef" in accepted["message"]
