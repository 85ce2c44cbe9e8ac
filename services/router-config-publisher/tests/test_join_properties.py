"""Whatever happens in whatever order, the join is that of the last facts, and says what changed."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from publisher_builders import (
    LLMAZ,
    Document,
    created,
    document,
    fact,
    model_serving,
    owner,
    pod,
    route,
    server,
    to,
    workload,
    workload_key,
)

from inferbus_contracts.base import EventData
from inferbus_contracts.events.route import RoutesResolved
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.core import Affected, Join
from inferbus_router_config_publisher.policy_parts import Part

NAMES = ("a", "b", "c")
NAMESPACES = ("ns", "other")

names = st.sampled_from(NAMES)
namespaces = st.sampled_from(NAMESPACES)
labels = st.dictionaries(st.sampled_from(("app", "tier", "zone")), names, max_size=3)


@st.composite
def routes(draw: st.DrawFn) -> Document:
    made = draw(st.booleans())
    return route(
        draw(names),
        *draw(
            st.lists(
                st.lists(names, max_size=2).map(lambda targets: to(*targets)),
                min_size=1,
                max_size=3,
            )
        ),
        model=draw(names),
        second=draw(st.integers(0, 3)),
        namespace=draw(namespaces),
        loraAdapters=draw(st.lists(names, max_size=2)),
        owners=[owner(LLMAZ, "Playground", draw(names))] if made else None,
    )


@st.composite
def servers(draw: st.DrawFn, ports: tuple[int | None, ...] = (8000, None)) -> Document:
    port = draw(st.sampled_from(ports))
    return server(draw(names), draw(labels), namespace=draw(namespaces), port=port)


@st.composite
def origins(draw: st.DrawFn) -> Document:
    name = draw(names)
    if draw(st.booleans()):
        return document(LLMAZ, "Playground", name, {"modelClaim": {"modelName": draw(names)}})
    body = {
        "familyName": "f",
        "source": {"modelHub": {"modelID": "a/b"}},
        "ownedBy": draw(names),
        "createdAt": created(draw(st.integers(0, 3))),
    }
    return document("llmaz.io/v1alpha1", "OpenModel", name, body)


@st.composite
def objects(draw: st.DrawFn) -> tuple[ObjectKey, EventData]:
    servings = st.builds(lambda name, own: model_serving(name, main=own), names, labels)
    doc = draw(st.one_of(routes(), servers(), origins(), servings))
    key, data = fact(doc, deleted=draw(st.integers(0, 3)) == 0)
    if draw(st.integers(0, 9)) == 0 and not data.deleted:
        data = data.model_copy(update={"object": data.object | {"spec": "unreadable"}})
    return key, data


@st.composite
def observations(draw: st.DrawFn) -> tuple[ObjectKey, EventData]:
    pods = draw(
        st.dictionaries(
            names,
            st.fixed_dictionaries(
                {
                    "labels": labels,
                    "ready": st.booleans(),
                    "deleting": st.booleans(),
                    "entry": st.booleans(),
                    "address": st.sampled_from(("", "10.0.0.1", "10.0.0.2")),
                }
            ),
            max_size=3,
        )
    )
    key = workload_key(draw(names), namespace=draw(namespaces))
    return key, workload(*(pod(f"{key.name}-{name}", **own) for name, own in pods.items()))


facts = st.one_of(objects(), observations())


def fold(join: Join, key: ObjectKey, data: EventData) -> Affected:
    if isinstance(data, SpecChanged):
        return join.fold_object(key, data)
    assert isinstance(data, WorkloadObserved)
    return join.fold_workload(key, data)


def told(join: Join, key: ObjectKey) -> tuple[bool, Part | None, RoutesResolved | None]:
    return join.is_settled(key), join.part(key), join.resolved(key)


class Mirror:
    """What a publisher knows that looks only where it is told to."""

    def __init__(self) -> None:
        self.parts: dict[ObjectKey, Part | None] = {}
        self.conditions: dict[ObjectKey, RoutesResolved | None] = {}

    def follow(self, join: Join, affected: Affected) -> None:
        self.parts |= {key: join.part(key) for key in affected.parts}
        self.conditions |= {key: join.resolved(key) for key in affected.conditions}


@settings(max_examples=300, deadline=None)
@given(st.lists(facts, max_size=25), st.randoms(use_true_random=False))
def test_the_join_is_that_of_the_last_facts_and_tells_every_change(
    history: list[tuple[ObjectKey, Any]], order: random.Random
) -> None:
    join, mirror = Join(), Mirror()
    for key, data in history:
        mirror.follow(join, fold(join, key, data))

    fresh, last = Join(), list({(type(data), key): (key, data) for key, data in history}.values())
    order.shuffle(last)
    for key, data in last:
        fold(fresh, key, data)

    keys = {key for key, _ in history if key.kind in ("ModelRoute", "ModelServer")}
    assert join.keys() == fresh.keys()
    for key in keys:
        assert told(join, key) == told(fresh, key)
        assert mirror.parts.get(key) == fresh.part(key)
        assert mirror.conditions.get(key) == fresh.resolved(key)


@settings(max_examples=200, deadline=None)
@given(st.lists(observations(), max_size=12), st.lists(servers((8000,)), min_size=1, max_size=3))
def test_a_lost_endpoint_and_nothing_else_is_urgent(
    history: list[tuple[ObjectKey, Any]], documents: list[Document]
) -> None:
    join = Join()
    for doc in documents:
        join.fold_object(*fact(doc))
    for key, data in history:
        before = available(join)
        affected = fold(join, key, data)
        assert affected.urgent is bool(before - available(join))


def available(join: Join) -> set[tuple[ObjectKey, str, str]]:
    found: set[tuple[ObjectKey, str, str]] = set()
    for key in sorted(join.keys()):
        part = join.part(key)
        assert part is not None
        found |= {
            (key, endpoint.pod, endpoint.address)
            for endpoint in getattr(part.entry, "endpoints", ())
            if endpoint.ready and not endpoint.draining
        }
    return found
