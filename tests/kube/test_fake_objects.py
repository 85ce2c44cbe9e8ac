"""Objects on both servers: creating, reading, replacing, patching, deleting, and every refusal."""

from tests.support.kube_calls import KubeCalls, path_of


def config_map(name: str = "a", **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_new_object_has_what_the_server_gives(
    kube_calls: KubeCalls, namespace: str
) -> None:
    answer = await kube_calls.post(path_of("configmaps", namespace), config_map(k="v"))
    assert answer.code == 201
    meta = answer.body["metadata"]
    assert answer.body["data"] == {"k": "v"}
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")
    assert meta["namespace"] == namespace
    assert len(meta["uid"]) == 36
    assert int(meta["resourceVersion"]) > 0
    assert meta["creationTimestamp"].endswith("Z")
    assert "generation" not in meta
    again = await kube_calls.get(path_of("configmaps", namespace, "a"))
    assert again.body == answer.body
