"""The table as objects of other gateways, spelt out."""

from publisher_builders import World, model_serving, pod, route, route_key, server, server_key, to

from inferbus_contracts.admission.admit import admit
from inferbus_contracts.resources.gateway_api import HTTPRoute, InferencePool
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.resources.networking import ModelServer
from inferbus_router_config_publisher.policy_output import (
    Picker,
    ai_gateway_route,
    ai_service_backend,
    http_route,
    inference_pool,
)

GOLD = {"headers": {"Tier": {"prefix": "go.ld"}}, "uri": {"prefix": "/v1/"}}
PARENTS = [{"name": "g", "namespace": "infra", "sectionName": "web"}]
PICKER = Picker(name="picker", port=9002)


def world() -> World:
    made = World(
        route(
            "r",
            to("s", "t", weights=(3, 1), match=GOLD),
            to("s"),
            loraAdapters=["la"],
            parentRefs=PARENTS,
        ),
        server("s", model="big"),
        model_serving(),
    )
    made.observe(pod("a"), pod("b", ready=False, address="10.0.0.2"))
    return made


def test_a_route_as_an_http_route() -> None:
    output = http_route(route_key(), world().route())
    (found,) = output.objects

    assert output.lost == ()
    assert found == {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": "ns"},
        "spec": {
            "parentRefs": [
                {
                    "group": "gateway.networking.k8s.io",
                    "kind": "Gateway",
                    "name": "g",
                    "namespace": "infra",
                    "sectionName": "web",
                }
            ],
            "rules": [
                {
                    "matches": [
                        {
                            "headers": [
                                {"type": "Exact", "name": "X-Gateway-Model-Name", "value": name},
                                {"type": "RegularExpression", "name": "tier", "value": "go\\.ld.*"},
                            ],
                            "path": {"type": "PathPrefix", "value": "/v1/"},
                        }
                        for name in ("m", "la")
                    ],
                    "backendRefs": [pool("s", 3), pool("t", 1)],
                },
                {
                    "matches": [
                        {
                            "headers": [
                                {"type": "Exact", "name": "X-Gateway-Model-Name", "value": name}
                            ]
                        }
                        for name in ("m", "la")
                    ],
                    "backendRefs": [pool("s", 100)],
                },
            ],
        },
    }
    assert HTTPRoute.model_validate(found).spec.rules[0].backend_refs[0].weight == 3


def pool(name: str, weight: int) -> dict[str, object]:
    group = {"group": "inference.networking.k8s.io", "kind": "InferencePool"}
    return group | {"name": name, "weight": weight}


def test_a_server_as_a_pool() -> None:
    resource = KINDS["ModelServer"].model.model_validate(admit(server(model="big")).object)
    assert isinstance(resource, ModelServer)
    output = inference_pool(server_key(), resource, PICKER)
    (found,) = output.objects

    assert found["spec"] == {
        "selector": {"matchLabels": {"app": "s"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
    }
    assert (found["apiVersion"], found["kind"]) == (
        "inference.networking.k8s.io/v1",
        "InferencePool",
    )
    assert output.lost == ("ModelServer/ns/s: the model isn't renamed to big",)
    assert InferencePool.model_validate(found).spec.target_ports[0].number == 8000


def test_a_server_without_a_port_is_no_pool() -> None:
    resource = KINDS["ModelServer"].model.model_validate(admit(server(port=None)).object)
    assert isinstance(resource, ModelServer)
    output = inference_pool(server_key(), resource, PICKER)

    assert output.objects == ()
    assert len(output.lost) == 1


def test_a_route_for_envoys_ai_gateway() -> None:
    made = world()
    servers = {str(server_key()): made.server()}
    output = ai_gateway_route(route_key(), made.route(), servers)
    (found,) = output.objects

    assert (found["apiVersion"], found["kind"]) == (
        "aigateway.envoyproxy.io/v1beta1",
        "AIGatewayRoute",
    )
    assert output.lost == ("ModelRoute/ns/r: a match by path",)
    assert found["spec"]["rules"][1] == {
        "matches": [
            {"headers": [{"type": "Exact", "name": "x-ai-eg-model", "value": name}]}
            for name in ("m", "la")
        ],
        "backendRefs": [{"name": "s", "weight": 100, "modelNameOverride": "big"}],
    }


def test_a_server_for_envoys_ai_gateway() -> None:
    output = ai_service_backend(server_key(), world().server())

    assert output.lost == ()
    assert output.objects == (
        {
            "apiVersion": "aigateway.envoyproxy.io/v1beta1",
            "kind": "AIServiceBackend",
            "metadata": {"name": "s", "namespace": "ns"},
            "spec": {
                "schema": {"name": "OpenAI"},
                "backendRef": {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "s"},
            },
        },
        {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1",
            "kind": "Backend",
            "metadata": {"name": "s", "namespace": "ns"},
            "spec": {"endpoints": [{"ip": {"address": "10.0.0.1", "port": 8000}}]},
        },
    )


def test_what_another_gateway_can_not_do_is_told() -> None:
    made = World(
        route(rateLimit={"inputTokensPerUnit": 5, "unit": "second"}),
        server(
            pd_group={"groupKey": "g", "prefillLabels": {"r": "p"}, "decodeLabels": {"r": "d"}},
            workloadPort={"port": 1, "protocol": "https"},
        ),
    )
    made.observe(pod(labels={"app": "s", "g": "1", "r": "d"}))

    assert http_route(route_key(), made.route()).lost == (
        "ModelRoute/ns/r: rateLimit",
        "ModelRoute/ns/r: names no Gateway, so no gateway takes it",
    )
    assert len(ai_service_backend(server_key(), made.server()).lost) == 2
