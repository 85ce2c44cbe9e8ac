from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.leader_worker_sets import (
    MANAGED_BY,
    LeaderWorkerSets,
    controller_sign,
    input_refusal,
    is_produced,
)

AUTO = LeaderWorkerSets.AUTO


def document(
    *, owner: str = "", labels: dict[str, str] | None = None, writer: str = "", part: str = "status"
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "p", "labels": labels or {}}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": owner, "kind": "Service", "name": "p"}]
    if writer:
        metadata["managedFields"] = [{"manager": writer, "subresource": part}]
    return {"kind": "LeaderWorkerSet", "metadata": metadata}


@pytest.mark.parametrize(
    ("setting", "holder", "objects", "said"),
    [
        (AUTO, "", [], ""),
        (AUTO, "lws-0", [], "lws-0"),
        (AUTO, "", [document()], ""),
        (AUTO, "", [document(), document(writer="lws")], "lws writes the status of p"),
        (AUTO, "", [document(writer="inferbus-workload-reconciler")], ""),
        (AUTO, "", [document(writer="kubectl", part="")], ""),
        (LeaderWorkerSets.CONTROLLER, "", [], "settings"),
        (LeaderWorkerSets.PLATFORM, "lws-0", [document(writer="lws")], ""),
    ],
)
def test_what_shows_the_controller(
    setting: LeaderWorkerSets, holder: str, objects: list[dict[str, Any]], said: str
) -> None:
    sign = controller_sign(setting, holder, objects)
    assert bool(sign) is bool(said)
    assert said in sign


@pytest.mark.parametrize(
    ("one", "sign", "said"),
    [
        (document(), "", ""),
        (document(), "lws renews", "lws renews"),
        (document(owner="inference.llmaz.io/v1alpha1"), "", "Service p"),
        (document(owner="workload.serving.volcano.sh/v1alpha1"), "", "Service p"),
        (document(owner="apps/v1"), "", ""),
        (document(labels={MANAGED_BY: "anything"}), "", "made from"),
        (document(labels={"app": "x"}), "", ""),
    ],
)
def test_which_are_accepted_as_input(one: dict[str, Any], sign: str, said: str) -> None:
    refusal = input_refusal(one, sign)
    assert bool(refusal) is bool(said)
    assert said in refusal


@given(
    served=st.booleans(),
    setting=st.sampled_from(LeaderWorkerSets),
    holder=st.sampled_from(["", "lws-0"]),
    own=st.booleans(),
)
def test_none_is_run_twice(served: bool, setting: LeaderWorkerSets, holder: str, own: bool) -> None:
    """Where one is produced, none is accepted, ours or not; a user's is run by exactly one."""
    sign = controller_sign(setting, holder, ())
    one = document(owner="inference.llmaz.io/v1alpha1" if own else "")
    accepted = not input_refusal(one, sign)
    assert not (is_produced(served, sign) and accepted)
    if not own:
        assert accepted is not bool(sign)
