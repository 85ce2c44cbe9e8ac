"""What is told about objects: all that people own, nothing of a Secret, and each end."""

import asyncio
from typing import Any

from expansion_builders import open_model
from watching import apply, delete, spec_watcher, subjects, there

from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import key_tokens
from inferbus_contracts.topology import OBJECTS_BUCKET, bucket_stream, bucket_subject
from inferbus_shared.bus.jetstream import api
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.announcer import announcement, decision_of, tombstone
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.policy_objects import scale
from tests.support.eventually import eventually
from tests.support.nats import NatsServer
from tests.support.platform import model_manifests

METADATA = {
    "name": "chat",
    "namespace": "default",
    "uid": "u",
    "generation": 3,
    "labels": {"team": "x"},
    "managedFields": [{"manager": "folder", "fields": ["/spec/replicas"], "last": True}],
}


def stored(revision: int = 1, **status: Any) -> StoredObject:
    serving, _, _ = model_manifests("chat")
    return StoredObject({**serving, "metadata": METADATA, "status": status}, revision)


def test_a_status_or_a_revision_is_no_news() -> None:
    assert announcement(stored()) == announcement(stored(2, replicas=3))


def test_a_fact_holds_who_and_what_and_by_whom() -> None:
    fact = announcement(stored())
    assert (fact.uid, fact.generation, fact.changed_by) == ("u", 3, "folder")
    assert fact.object["metadata"]["labels"] == {"team": "x"}
    assert "status" not in fact.object
    assert "managedFields" not in fact.object["metadata"]


def test_an_end_holds_who_it_was_and_nothing_of_what() -> None:
    end = tombstone(announcement(stored()))
    assert (end.deleted, end.uid, end.generation) == (True, "u", 3)
    identity = {"name": "chat", "namespace": "default", "uid": "u"}
    assert identity.items() <= end.object["metadata"].items()
    assert "spec" not in end.object
    assert "labels" not in end.object["metadata"]


def test_only_a_scale_request_follows_from_its_decision() -> None:
    scaled = StoredObject(scale(stored(), "", 4, "decision").object, 2)
    assert decision_of(announcement(scaled)) == "decision"
    by_hand = {**METADATA, "annotations": {"inferbus.dev/decision-id": "decision"}}
    edited = StoredObject({**stored().object, "metadata": by_hand}, 2)
    assert decision_of(announcement(edited)) == ""


async def test_what_went_while_nobody_could_tell_is_told_by_the_next(
    nats_server: NatsServer,
) -> None:
    key = ObjectKey("OpenModel", "_", "opt")
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, open_model())
        await eventually(lambda: is_told(nats_server, key, 1))
    await delete_and_crash(nats_server, key)
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await eventually(lambda: is_told(nats_server, key, 2))
        last = await bus.last("spec.changed", key)
        assert last is not None
        assert isinstance(last.data, SpecChanged)
        assert last.data.deleted


async def delete_and_crash(server: NatsServer, key: ObjectKey) -> None:
    """What an instance does that ends between storing and telling; and after an hour without
    another, when the bucket has forgotten that there was anything."""
    async with server.bus(Service.SPEC_WATCHER, "crashing") as bus:
        store = ObjectStore(bus)
        following = asyncio.create_task(store.run())
        await store.ready()
        await store.write({key: None})
        following.cancel()
    async with server.connection() as connection:
        everything_of_it = {"filter": bucket_subject(OBJECTS_BUCKET, key_tokens(key))}
        await api(connection, f"STREAM.PURGE.{bucket_stream(OBJECTS_BUCKET)}", everything_of_it)


async def is_told(server: NatsServer, key: ObjectKey, count: int) -> bool:
    facts = await subjects(server, "spec.changed")
    return [number for subject, number in facts.items() if subject.endswith(f".{key.name}")] == [
        count
    ]


async def test_nothing_is_told_of_secrets_pods_and_configuration(nats_server: NatsServer) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "Secret": {},
        "ConfigMap": {"data": {"a": "b"}},
        "Pod": {"spec": {"containers": [{"name": "c"}]}},
    }
    quiet = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, **more}
        for kind, more in bodies.items()
    ]
    async with spec_watcher(nats_server), nats_server.bus(Service.CLI) as bus:
        await apply(bus, *quiet)
        await there(bus, "Secret/default/x", "ConfigMap/default/x", "Pod/default/x")
        await apply(bus, open_model("last"))
        await eventually(lambda: is_told(nats_server, ObjectKey("OpenModel", "_", "last"), 1))
        await delete(bus, "ConfigMap/default/x")
        told = {subject.split(".")[4] for subject in await subjects(nats_server, "spec.changed")}
        assert told <= {"OpenModel", "BackendRuntime"}
