"""The debug endpoint: what the router knows, for operators on its machine."""

from typing import Any

import pytest

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.debug import is_loopback
from services.router.tests.builders import route, route_key, rule, server, server_key
from services.router.tests.client import chat
from services.router.tests.conftest import RouterUnderTest, StartEngine, StartRouter
from services.router.tests.engine import Gate, answers
from services.router.tests.named_fleet import StartFleet, plugins
from tests.support.eventually import eventually

DUMP = "/debug/config_dump"


async def get(router: RouterUnderTest, path: str) -> Any:
    response = await (await router.client(router.admin_port)).get(path)
    assert response.status == 200, response.body
    return response.json


async def test_t104_the_debug_endpoint_answers_on_loopback_alone(
    start_router_under_test: StartRouter,
) -> None:
    """On every address there are metrics; who isn't on the machine gets no more."""
    router = await start_router_under_test(http_host="0.0.0.0", debug_port=0)
    debug = router.running.operations.debug
    assert debug is not None
    local = await (await router.client(debug.port)).get(f"{DUMP}/pods")
    admin = await router.client(router.admin_port)

    assert (local.status, local.json) == (200, {"pods": None})
    assert (await admin.get(f"{DUMP}/pods")).status == 404
    assert (await admin.get("/metrics")).status == 200


async def test_t104_beside_public_metrics_there_is_no_debug_endpoint(
    start_router_under_test: StartRouter,
) -> None:
    router = await start_router_under_test(http_host="0.0.0.0")

    assert router.running.operations.debug is None
    assert (await (await router.client(router.admin_port)).get("/debug")).status == 404


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "router")),
    ],
)
def test_what_is_loopback(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


async def test_clients_have_no_debug_endpoint(router: RouterUnderTest) -> None:
    assert (await (await router.client()).get(f"{DUMP}/pods")).status == 404


async def test_it_can_only_be_read(router: RouterUnderTest) -> None:
    client = await router.client(router.admin_port)
    for method in ("PUT", "POST", "DELETE"):
        assert (await client.get(f"{DUMP}/pods", method)).status == 405


async def test_kinds_without_objects_are_null(router: RouterUnderTest) -> None:
    for kind in (
        "modelroutes",
        "modelservers",
        "pods",
        "gateways",
        "httproutes",
        "inferencepools",
    ):
        assert await get(router, f"{DUMP}/{kind}") == {kind: None}


async def test_routes_and_servers_are_told(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engines = [await start_engine() for _ in range(3)]
    roles = ("decode", "prefill", "")
    entries = [each.entry(role=role, group="g") for each, role in zip(engines, roles, strict=True)]
    router.apply(
        {
            route_key("r"): route(rule(("ms", 7), ("other", 3)), adapters=["la"]),
            server_key("ms"): server(*entries, model="up"),
        }
    )
    (told_route,) = (await get(router, f"{DUMP}/modelroutes"))["modelroutes"]
    told_server = await get(router, f"{DUMP}/namespaces/ns/modelservers/ms")
    pods = [f"ns/{entry.pod}" for entry in entries]

    assert (told_route["modelName"], told_route["loraAdapters"]) == ("m", ["la"])
    assert told_route["rules"][0]["targetModels"] == [
        {"modelServerName": "ms", "weight": 7},
        {"modelServerName": "other", "weight": 3},
    ]
    assert told_server["model"] == "up"
    assert told_server["associatedPods"] == sorted(pods)
    assert (told_server["decodePods"], told_server["prefillPods"]) == ([pods[0]], [pods[1]])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("pods/x", "Pod not found"),
        ("modelroutes/x", "ModelRoute not found"),
        ("gateways/x", "Gateway not found"),
    ],
)
async def test_what_is_missing_is_named(router: RouterUnderTest, path: str, message: str) -> None:
    client = await router.client(router.admin_port)
    response = await client.get(f"{DUMP}/namespaces/ns/{path}")

    assert (response.status, response.json) == (404, {"error": message})


async def test_a_path_that_means_nothing_is_no_page(router: RouterUnderTest) -> None:
    client = await router.client(router.admin_port)
    for path in (
        "/debug/x",
        f"{DUMP}/x",
        f"{DUMP}/namespaces/ns/x/y",
        f"{DUMP}/pods/ns",
        "/debugx",
    ):
        assert (await client.get(path)).status == 404, path
    assert f"{DUMP}/pods" in (await get(router, "/debug"))["pages"]


async def test_rt_38_load_and_health_of_endpoints_are_told(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    gate = Gate()
    engine = await start_engine(gate)
    router.serve(engine.entry())
    await (await router.client()).send(
        b"POST /v1/completions HTTP/1.1\r\nhost: r\r\ncontent-length: 27\r\n\r\n"
        b'{"model":"m","prompt":"hi"}'
    )
    await eventually(lambda: len(engine.turns) == 1)
    pod = await get(router, f"{DUMP}/namespaces/ns/pods/pod-{engine.port}")
    gate.open()

    assert (pod["load"]["inFlight"], pod["load"]["ejectedForMs"]) == (1, 0)
    assert pod["modelServers"] == ["ns/ms"]
    assert pod["podInfo"]["podIP"] == "127.0.0.1"
    await router.settled()


async def test_what_engines_say_is_told(start_fleet: StartFleet) -> None:
    async def shows(turn: Any) -> None:
        text = b"vllm:num_requests_waiting 4\n"
        await turn.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text))

    fleet = await start_fleet(plugins("least-request"), shows)

    async def waiting() -> Any:
        (pod,) = (await get(fleet.router, f"{DUMP}/pods"))["pods"]
        return pod["metrics"]["requestWaitingNum"]

    await eventually(waiting)
    assert await waiting() == 4


async def test_the_scheduler_and_its_caches_are_told(start_fleet: StartFleet) -> None:
    fleet = await start_fleet(plugins("prefix-cache", filters=("lora-affinity",)), answers)
    await (await fleet.client()).post(chat())
    index = await get(fleet.router, "/debug/prefix_index")

    assert await get(fleet.router, "/debug/scheduler") == {
        "name": "plugins",
        "filters": ["lora-affinity"],
        "scores": [{"name": "prefix-cache", "weight": 1}],
    }
    assert sum(index["plugins"]["prefix-cache"].values()) == 1


async def test_held_requests_are_told(router: RouterUnderTest) -> None:
    router.serve()
    client = await router.client()
    await client.send(
        b"POST /v1/completions HTTP/1.1\r\nhost: r\r\ncontent-length: 27\r\n\r\n"
        b'{"model":"m","prompt":"hi"}'
    )

    async def held() -> Any:
        return (await get(router, "/debug/held"))["requests"]

    await eventually(held)
    told = await get(router, "/debug/held")
    assert [(each["model"], each["waiting"]) for each in told["targets"]] == [("m", 1)]
    client.abort()
    await router.settled()


async def test_what_is_left_of_limits_is_told(
    router: RouterUnderTest, start_engine: StartEngine
) -> None:
    engine = await start_engine()
    limit = TokenLimit(input_tokens=1000, unit_seconds=86_400)
    router.apply({route_key("r"): route(limit=limit), server_key("ms"): server(engine.entry())})
    await (await router.client()).post(chat())
    await router.settled()
    told = (await get(router, "/debug/limits"))["ns/r"]

    assert told["declared"]["inputTokens"] == 1000
    assert [(each["inputTokens"], each["outputTokens"]) for each in told["holders"]] == [
        (997, None)
    ], "the engine counted 3"
