"""A rendered ModelRoute is an offer: the one that a user applies takes its place, whole."""

from typing import Any

import pytest

from inferbus_contracts.api.objects import Change
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import kind_of
from inferbus_shared.objects.picture import StoredObject, controller_uid
from inferbus_spec_watcher.policy_objects import EXPANDER, Written, apply_document

NETWORKING = "networking.serving.volcano.sh/v1alpha1"


def document(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": NETWORKING,
        "kind": kind,
        "metadata": {"name": "play", "namespace": "default", **metadata},
        "spec": spec,
    }


def route(model: str, **metadata: Any) -> dict[str, Any]:
    target = {"modelServerName": "play"}
    rules = [{"name": "default", "targetModels": [target]}]
    return document("ModelRoute", {"modelName": model, "rules": rules}, **metadata)


def server(port: int, **metadata: Any) -> dict[str, Any]:
    labels = {"matchLabels": {"app": "play"}}
    spec = {
        "inferenceEngine": "vLLM",
        "workloadSelector": labels,
        "workloadPort": {"port": port},
    }
    return document("ModelServer", spec, **metadata)


def rendered(child: dict[str, Any]) -> StoredObject:
    group = "inference.llmaz.io/v1alpha1"
    owner = {
        "apiVersion": group,
        "kind": "Service",
        "name": "play",
        "uid": "owner",
        "controller": True,
    }
    child["metadata"] |= {"ownerReferences": [owner], "annotations": {"by": "the platform"}}
    written = written_by(EXPANDER, child, None)
    return StoredObject(written.object, 1)


def written_by(manager: str, body: dict[str, Any], stored: StoredObject | None) -> Written:
    key = ObjectKey(kind_of(body).token, "default", "play")
    return apply_document(key, stored, body, manager, uid="u", now_ms=0)


def test_a_users_route_replaces_the_rendered_one_whole_without_force() -> None:
    stored = rendered(route("theirs"))
    written = written_by("cli", route("mine", labels={"by": "me"}), stored)
    assert written.change is Change.CONFIGURED
    assert written.object["spec"]["modelName"] == "mine"
    assert controller_uid(written.object) == ""
    assert "annotations" not in written.object["metadata"]
    assert written.object["metadata"]["uid"] == stored.uid
    assert written.object["metadata"]["generation"] == 2


def test_the_platform_goes_on_rendering_a_route_that_nobody_took() -> None:
    stored = rendered(route("theirs"))
    body = route("others", ownerReferences=stored.object["metadata"]["ownerReferences"])
    assert controller_uid(written_by(EXPANDER, body, stored).object) == "owner"


def test_a_route_that_a_user_took_belongs_to_that_user_alone() -> None:
    taken = StoredObject(written_by("cli", route("mine"), rendered(route("theirs"))).object, 2)
    with pytest.raises(ProblemsError) as caught:
        written_by("folder", route("of the folder"), taken)
    assert caught.value.problems[0].code is ErrorCode.FIELD_OWNED_BY_OTHER


def test_other_rendered_children_are_not_to_be_had_without_force() -> None:
    stored = rendered(server(8000))
    with pytest.raises(ProblemsError) as caught:
        written_by("cli", server(9000), stored)
    assert caught.value.problems[0].code is ErrorCode.FIELD_OWNED_BY_OTHER
