"""The memory's bucket, with two instances at work on one workload."""

import pytest

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_contracts.subjects import key_tokens
from inferbus_contracts.topology import WORKLOADS_BUCKET
from inferbus_shared.bus.store import WrongSequenceError
from inferbus_workload_reconciler.memory_store import MemoryStore
from tests.support.nats import NatsServer

KEY = ObjectKey("ModelServing", "default", "m")
UID = "u"


async def test_ms_d44_what_another_instance_stored_is_noticed_before_anything_is_done(
    nats_server: NatsServer,
) -> None:
    """Without leaders nobody idles: who was overtaken finds out before it acts, and goes on."""
    async with nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        one, other = MemoryStore(bus), MemoryStore(bus)
        assert await one.load(KEY, UID) == {}
        assert await one.confirm(KEY)
        await other.load(KEY, UID)
        await other.store(KEY, UID, {"view": 2})
        assert await one.load(KEY, UID) == {}, "what was loaded is kept"
        assert not await one.confirm(KEY)
        assert await one.load(KEY, UID) == {"view": 2}
        assert await one.confirm(KEY)


async def test_of_two_that_store_one_loses_and_sees_the_other_s(nats_server: NatsServer) -> None:
    async with nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        one, other = MemoryStore(bus), MemoryStore(bus)
        await one.load(KEY, UID)
        await other.load(KEY, UID)
        await other.store(KEY, UID, {"view": 2})
        with pytest.raises(WrongSequenceError):
            await one.store(KEY, UID, {"view": 1})
        assert await one.load(KEY, UID) == {"view": 2}
        await one.store(KEY, UID, {"view": 3})
        assert await one.load(KEY, UID) == {"view": 3}
        assert await one.confirm(KEY)
        assert (one.is_own(KEY), other.is_own(KEY)) == (True, True)
        assert not await other.confirm(KEY)
        assert not other.is_own(KEY)


async def test_another_object_of_the_name_remembers_nothing(nats_server: NatsServer) -> None:
    async with nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        memory = MemoryStore(bus)
        await memory.load(KEY, UID)
        await memory.store(KEY, UID, {"view": 2})
        assert await memory.load(KEY, "another") == {}
        await memory.forget(KEY)
        assert await memory.load(KEY, UID) == {}


async def test_what_was_forgotten_is_not_forgotten_again(nats_server: NatsServer) -> None:
    """A deleted workload is looked at again and again; that leaves no more traces."""
    async with nats_server.bus(Service.WORKLOAD_RECONCILER) as bus:
        memory = MemoryStore(bus)
        await memory.load(KEY, UID)
        await memory.store(KEY, UID, {"view": 2})
        await memory.forget(KEY)
        before = await bus.bucket(WORKLOADS_BUCKET).get(key_tokens(KEY))
        await memory.forget(KEY)
        assert await bus.bucket(WORKLOADS_BUCKET).get(key_tokens(KEY)) == before
