"""External providers: what routers get of them, and what is said about them (routing spec 1.3)."""

import asyncio
from typing import Any

import pytest
from publisher_builders import NETWORKING, Document, World, document, route, route_key, server
from publisher_platform import platform

from inferbus_contracts.admission.admit import admit
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.events.route import (
    EndpointEntry,
    ProviderEntry,
    RouteAcknowledged,
    ServerEntry,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_router.adapters_bus import Sayings
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

KEY = ObjectKey("ExternalModelProvider", "ns", "hub")
ROUTER, OTHER = ObjectKey("Router", "", "r-1"), ObjectKey("Router", "", "r-2")
NONE: frozenset[ObjectKey] = frozenset()


def provider(**spec: Any) -> Document:
    known = {"baseURL": "https://api.example.com/v1"}
    return document(NETWORKING, "ExternalModelProvider", "hub", known | spec)


def secret(name: str = "keys", key: str = "token", **auth: str) -> Document:
    return {"secretRef": {"name": name, "key": key}} | auth


def outside(weight: int = 100) -> Document:
    """A rule that leads to the provider."""
    return {"targetModels": [{"externalModelProviderName": "hub", "weight": weight}]}


def entry(world: World) -> ServerEntry:
    part = world.join.part(KEY)
    assert part is not None
    assert isinstance(part.entry, ServerEntry)
    return part.entry


def test_t097_what_routers_get_of_a_provider() -> None:
    world = World(
        provider(
            baseURL="https://api.example.com:8443/openai/v1/",
            model="gpt-x",
            auth=secret(),
            headers={"X-Team": "ours"},
            insecureSkipVerify=True,
        )
    )
    assert entry(world) == ServerEntry(
        model="gpt-x",
        engine="OpenAI",
        protocol="https",
        endpoints=[EndpointEntry(pod="ns/hub", address="api.example.com", port=8443)],
        provider=ProviderEntry(
            kind="OpenAI",
            host="api.example.com:8443",
            base_path="/openai/v1",
            insecure_skip_verify=True,
            auth="Bearer",
            secret_name="keys",
            secret_key="token",
            headers={"X-Team": "ours"},
        ),
    )


@pytest.mark.parametrize(
    ("spec", "scheme"),
    [
        ({"auth": secret()}, "Bearer"),
        ({"auth": secret(scheme="APIKey")}, "APIKey"),
        ({"providerType": "Anthropic", "auth": secret()}, "APIKey"),
        ({"providerType": "Anthropic", "auth": secret(scheme="Bearer")}, "Bearer"),
    ],
)
def test_each_api_has_its_own_way_to_be_sent_a_credential(spec: Document, scheme: str) -> None:
    known = entry(World(provider(**spec))).provider
    assert known is not None
    assert known.auth == scheme


def test_a_rule_may_lead_to_a_provider() -> None:
    world = World(route("r", outside()), provider())
    (rule,) = world.route().rules
    assert [target.server for target in rule.targets] == [str(KEY)]
    assert world.condition(route_key(), "ResolvedRefs")[:2] == ("True", "ResolvedRefs")
    assert world.condition(route_key(), "Ready")[:2] == ("True", "EndpointsReady")


def test_a_provider_that_is_missing_is_named_until_it_is_there() -> None:
    world = World(route("r", outside()), server())
    status, reason, message = world.condition(route_key(), "ResolvedRefs")
    assert (status, reason) == ("False", "BackendNotFound")
    assert message == "ExternalModelProvider ns/hub does not exist"

    affected = world.apply(provider())
    assert KEY in affected.parts
    assert route_key() in affected.conditions
    assert world.condition(route_key(), "ResolvedRefs")[0] == "True"
    world.apply(provider(), deleted=True)
    assert world.join.part(KEY) is None
    assert world.join.is_settled(KEY)
    assert world.condition(route_key(), "ResolvedRefs")[0] == "False"


def test_t100_a_provider_whose_credential_routers_cannot_read_is_not_ready() -> None:
    world = World(provider(auth=secret()))
    assert world.condition(KEY, "CredentialsResolved")[:2] == ("Unknown", "NotReported")

    assert world.join.report_credentials({ROUTER: NONE}) == {KEY}
    assert world.condition(KEY, "CredentialsResolved")[:2] == ("True", "CredentialResolved")
    assert world.condition(KEY, "Ready")[:2] == ("True", "Ready")

    assert world.join.report_credentials({ROUTER: NONE, OTHER: frozenset({KEY})}) == {KEY}
    for type_ in ("CredentialsResolved", "Ready"):
        status, reason, message = world.condition(KEY, type_)
        assert (status, reason) == ("False", "CredentialNotFound")
        assert "1 of 2 routers" in message
        assert "token of Secret ns/keys" in message
    assert world.join.report_credentials({ROUTER: NONE}) == {KEY}
    assert world.condition(KEY, "Ready")[0] == "True"


def test_a_change_in_how_many_routers_lack_it_is_told() -> None:
    world = World(provider(auth=secret()))
    lacking = frozenset({KEY})
    world.join.report_credentials({ROUTER: lacking, OTHER: NONE})
    assert world.join.report_credentials({ROUTER: lacking, OTHER: lacking}) == {KEY}
    assert "2 of 2 routers" in world.condition(KEY, "Ready")[2]


def test_a_provider_without_a_secret_needs_none() -> None:
    world = World(provider())
    assert world.condition(KEY, "CredentialsResolved")[:2] == ("True", "CredentialNotRequired")
    assert world.condition(KEY, "Ready")[:2] == ("True", "Ready")


def test_t101_a_route_with_adapters_stays_inside_the_fleet() -> None:
    with pytest.raises(ProblemsError, match="lora routes must target modelServerName"):
        admit(route("r", outside(), loraAdapters=["a"]))


async def test_t100_what_a_router_says_becomes_the_providers_conditions(
    nats_server: NatsServer,
) -> None:
    async with (
        platform(nats_server) as world,
        world.publisher(),
        nats_server.bus(Service.ROUTER) as bus,
    ):
        await world.apply(provider(auth=secret()))
        await eventually(lambda: KEY in world.router.held)
        sayings = Sayings(bus, "r-1")
        telling = asyncio.ensure_future(sayings.run())
        sayings.without_credential([KEY])
        last = world.router.messages[-1][1]
        sayings.acknowledge(
            RouteAcknowledged(revision=last.revision, table_digest=last.table_digest, lag_ms=1), 1
        )
        lacking = {"Ready": "CredentialNotFound", "CredentialsResolved": "CredentialNotFound"}
        await eventually(lambda: world.conditions(KEY) == lacking)
        sayings.without_credential([])
        resolved = {"Ready": "Ready", "CredentialsResolved": "CredentialResolved"}
        await eventually(lambda: world.conditions(KEY) == resolved)
        telling.cancel()
