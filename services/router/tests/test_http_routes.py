"""HTTPRoutes over real sockets: what an engine gets, and what clients get where there is none."""

from inferbus_contracts.events.route import UrlRewrite
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
    server,
    server_key,
)
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine
from services.router.tests.engine import Engine

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
