"""HTTPRoutes over real sockets: what an engine gets, and what clients get where there is none."""

import json
import socket
from pathlib import Path

from inferbus_contracts.events.route import ParentEntry, UrlRewrite
from inferbus_router.listener import bound_socket
from services.router.tests.builders import (
    Entries,
    gateway,
    gateway_key,
    http_route,
    http_route_key,
    http_rule,
    listener,
    pool_key,
    route,
    route_key,
    rule,
    server,
    server_key,
)
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Engine
from tests.support.eventually import eventually

REWRITE = UrlRewrite(prefix="/v1/chat", hostname="engine.example")


def behind_gateway(router: RouterUnderTest, engine: Engine) -> Entries:
    """The Gateway listens where the router does; `/chat` leads to the pool `p`."""
    return {
        gateway_key("g"): gateway(listener(router.port)),
        http_route_key("h"): http_route(
            http_rule("p", path="/chat", rewrite=REWRITE),
            http_rule(("p", 0), path="/nobody"),
        ),
        pool_key("p"): server(engine.entry(), target=None),
    }


async def test_t091_an_engine_gets_the_rewritten_path_and_host(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.apply(behind_gateway(router, engine))
    client = await router.client()
    response = await client.post(chat(model="whatever"), path="/chat/completions?x=1")

    assert response.status == 200
    (turn,) = engine.turns
    assert turn.target == "/v1/chat/completions?x=1"
    assert turn.headers["host"] == "engine.example"
    assert turn.json["model"] == "whatever"


async def test_rt_31_what_an_http_route_served_is_logged_without_an_error(
    start_router_under_test: StartRouter, start_engine: StartEngine, tmp_path: Path
) -> None:
    """No ModelRoute matched, and none had to."""
    log = tmp_path / "access.log"
    router = await start_router_under_test(access_log="json", access_log_path=log)
    router.apply(behind_gateway(router, await start_engine()))
    client = await router.client()
    assert (await client.post(chat(model="whatever"), path="/chat/completions")).status == 200
    line = json.loads(await eventually(log.read_text))
    assert (line["status_code"], line.get("error")) == (200, None)


async def test_t094_what_no_rule_takes_is_not_found(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    router.apply(behind_gateway(router, await start_engine()))
    client = await router.client()

    assert (await client.post(chat(), path="/chatty")).status == 404
    assert (await client.post(chat(), path="/v1/chat/completions")).status == 404


async def test_t095_a_rule_without_an_eligible_pool_is_unavailable(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    router.apply(behind_gateway(router, await start_engine()))
    response = await (await router.client()).post(chat(), path="/nobody/x")

    assert response.status == 503
    assert "no eligible InferencePool backend" in str(response.json)


async def test_t087_each_listener_has_routes_of_its_own(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    """By host here, where both listen on one port."""
    engines = [await start_engine(), await start_engine()]
    entries: Entries = {}
    for name, engine in zip("ab", engines, strict=True):
        entries = {
            **entries,
            gateway_key(name): gateway(listener(router.port, hostname=f"{name}.example")),
            http_route_key(name): http_route(http_rule(name, path="/"), gateway=name),
            pool_key(name): server(engine.entry(), target=None),
        }
    router.apply(entries)
    client = await router.client()
    for name in "aba":
        response = await client.post(chat(), path="/x", headers={"host": f"{name}.example"})
        assert response.status == 200

    assert [len(engine.turns) for engine in engines] == [2, 1]


async def test_names_that_clients_make_up_leave_nothing_in_the_books(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    router.apply(behind_gateway(router, await start_engine()))
    client = await router.client()
    for number in range(20):
        await client.post(chat(model=f"m{number}"), path="/chat/completions")
    await router.settled()

    traffic = router.running.router.ledger.traffic
    assert len(list(traffic.destinations())) <= 2
    assert set(traffic.models) == {"unknown"}


async def test_a_model_route_and_its_server_go_on_beside_gateways(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    router.apply(
        {
            **behind_gateway(router, engine),
            route_key("r"): route(),
            server_key("ms"): server(engine.entry()),
        }
    )
    client = await router.client()

    assert (await client.post(chat())).status == 200
    assert engine.turns[0].target == "/v1/chat/completions"


async def test_t087_two_gateways_on_two_ports_have_a_route_each_for_one_model(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = {name: await start_engine() for name in ("own", "other")}
    with bound_socket("127.0.0.1", 0, "a free port") as free:
        port: int = free.getsockname()[1]
    entries: Entries = {
        gateway_key("own"): gateway(listener(router.port)),
        gateway_key("other"): gateway(listener(port)),
    }
    for name, engine in engines.items():
        parents = [ParentEntry(gateway=str(gateway_key(name)))]
        entries = {
            **entries,
            route_key(name): route(rule(name), parents=parents),
            server_key(name): server(engine.entry()),
        }
    router.apply(entries)
    await eventually(lambda: router.running.gateways.ports == {port})

    for place, name in ((router.port, "own"), (port, "other")):
        assert (await (await router.client(place)).post(chat())).status == 200
        assert [len(engine.turns) for engine in engines.values()] == (
            [1, 0] if name == "own" else [1, 1]
        )

    router.remove(gateway_key("other"))
    await eventually(lambda: not router.running.gateways.ports)


async def test_a_port_that_is_taken_leaves_the_others_open(router: RouterUnderTest) -> None:
    with socket.socket() as taken, bound_socket("127.0.0.1", 0, "a free port") as free:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1], free.getsockname()[1]]
        listeners = [listener(port, name=str(port)) for port in ports]
        router.apply({gateway_key("g"): gateway(*listeners)})
        await eventually(lambda: router.running.gateways.ports == {ports[1]})
