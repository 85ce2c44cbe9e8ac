"""The interface over both servers: what it writes for clients leads to the server, as that user."""

import yaml

from inferbus_contracts.services import Service
from tests.support.kube import KubeServer
from tests.support.kube_calls import KubeCalls


async def test_every_service_has_a_token_that_is_known(kube_server: KubeServer) -> None:
    for user in Service:
        async with kube_server.calls(user) as calls:
            answer = await calls.get("/version")
        assert answer.code == 200, user


async def test_a_kubeconfig_says_where_and_who(kube_server: KubeServer) -> None:
    config = yaml.safe_load(kube_server.kubeconfig().read_text())
    token = config["users"][0]["user"]["token"]
    async with KubeCalls(
        config["clusters"][0]["cluster"]["server"], token, kube_server.ca_file
    ) as calls:
        assert (await calls.get("/api/v1/namespaces")).code == 200
    assert config["contexts"][0]["name"] == config["current-context"]


def test_settings_and_environment_say_the_same(kube_server: KubeServer) -> None:
    settings = kube_server.settings("admin")
    environment = kube_server.environment("admin")
    assert environment["INFERBUS_KUBE_SERVER"] == settings["server"] == kube_server.url
    path = kube_server.token_file("admin")
    assert environment["INFERBUS_KUBE_TOKEN_FILE"] == str(path)
    assert path.read_text() == kube_server.tokens["admin"]
