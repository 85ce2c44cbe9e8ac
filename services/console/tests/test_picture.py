"""What the console knows after some events: decisions, names, rows of `top`."""

import pytest

from inferbus_console.decisions import DecisionLog
from inferbus_console.picture import Picture
from inferbus_console.policy_rows import in_few_words, last_of_targets
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.metrics import (
    MetricAggregate,
    MetricKind,
    MetricsSampled,
    TargetSample,
)
from inferbus_contracts.events.route import RouteAcknowledged, RoutePublished
from inferbus_contracts.events.scaling import Limiter
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.events.workload import PodFact, RoleFact, WorkloadObserved
from inferbus_contracts.keys import ObjectKey
from services.console.tests.console_builders import (
    A100,
    BINDING,
    H100,
    MIX,
    POLICY,
    TARGET,
    allocated,
    decided,
    decision,
    policy_specs,
    received,
)


@pytest.fixture
def picture() -> Picture:
    picture = Picture()
    for key, data in policy_specs().items():
        picture.take(received(data, key))
    for key in (TARGET, H100, A100):
        data = WorkloadObserved(uid="u", generation=1, desired=2, replicas=2, ready=1)
        picture.take(received(data, key))
    return picture


def test_the_newest_decisions_are_kept_without_a_gap() -> None:
    log = DecisionLog(kept=3)
    for sequence in (1, 2, 3, 4, 4, 2):
        log.take(decision(decided(sequence), TARGET, sequence))
    assert [one.sequence for one in log.newest(TARGET)] == [4, 3, 2]
    assert log.newest(H100) == ()


def test_the_keys_of_decisions_follow_from_what_is_asked_about(picture: Picture) -> None:
    for key in (TARGET, POLICY, BINDING):
        assert TARGET in picture.decision_keys(key)
    assert picture.decision_keys(TARGET) == (TARGET,)
    assert picture.decision_keys(BINDING) == (TARGET,)
    for key in (MIX, H100, A100):
        assert picture.decision_keys(key) == (MIX,)
    assert picture.decision_keys(POLICY) == (MIX, TARGET), "two bindings apply this policy"


def test_roles_are_decided_about_each_for_itself(picture: Picture) -> None:
    roles = (TARGET._replace(role="decode"), TARGET._replace(role="prefill"))
    for key in roles:
        picture.take(received(decided(), key))
    assert picture.decision_keys(TARGET) == (TARGET, *roles)


def test_a_role_is_asked_about_by_itself_and_its_policy_about_both() -> None:
    owner, llm = POLICY._replace(name="llm"), TARGET._replace(name="llm")
    roles = (llm._replace(role="decode"), llm._replace(role="prefill"))
    scaling = {"minReplicas": 1, "maxReplicas": 9, "metricSources": {"load": {"pod": {}}}}
    target = {
        "targetRef": {"kind": llm.kind, "name": llm.name},
        "roles": {key.role: scaling for key in roles},
    }
    document = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": owner.kind,
        "metadata": {"name": owner.name, "namespace": owner.namespace},
        "spec": {
            "metrics": [{"name": "load", "targetValue": "1"}],
            "disaggregatedTarget": target,
        },
    }
    picture = Picture()
    fact = SpecChanged(uid="u", generation=1, digest="d", object=document)
    picture.take(received(fact, owner))
    assert picture.decision_keys(owner) == roles
    for key in roles:
        assert picture.decision_keys(key) == (key,)


def test_a_target_and_its_binding_of_one_name_are_one_thing(picture: Picture) -> None:
    """The policy of that name is another thing here: it scales the mix too."""
    assert picture.decided("ModelServing/default/chat") == TARGET
    picture.take(received(tombstone(MIX), MIX))
    assert picture.decided("chat") == TARGET


def test_names_without_decisions_are_never_one_thing() -> None:
    picture = Picture()
    for namespace in ("a", "b"):
        key = ObjectKey("ModelServing", namespace, "chat")
        picture.take(received(WorkloadObserved(uid="u", generation=1), key))
    with pytest.raises(ProblemsError, match="means 2 things"):
        picture.decided("chat")


def tombstone(key: ObjectKey) -> SpecChanged:
    return SpecChanged(uid=f"uid of {key}", generation=1, digest="d", deleted=True, object={})


def test_targets_and_policies_can_be_frozen(picture: Picture) -> None:
    assert picture.freezable("chat") == TARGET
    assert picture.freezable("autoscalingpolicy/chat") == POLICY
    assert picture.freezable("mix") == MIX
    with pytest.raises(ProblemsError) as told:
        picture.freezable("nobody")
    assert told.value.problems[0].code is ErrorCode.NOT_FOUND
    assert str(MIX) in told.value.problems[0].remedy


def test_namespaces_are_those_with_objects(picture: Picture) -> None:
    runtime = ObjectKey("BackendRuntime", "_", "vllm")
    team = ObjectKey("ConfigMap", "team", "c")
    for key in (runtime, team):
        picture.take(received(SpecChanged(uid="u", generation=1, digest="d", object={}), key))
    assert picture.namespaces == {"default", "team"}
    picture.take(received(tombstone(team), team))
    assert picture.namespaces == {"default"}


def test_top_has_a_row_for_each_workload_with_its_policy(picture: Picture) -> None:
    sample = TargetSample(
        target=str(TARGET),
        metrics=[MetricAggregate(name="waiting", kind=MetricKind.GAUGE, value=4.5)],
    )
    sampled = MetricsSampled(policy=str(BINDING), taken_at_ms=1, window_ms=1, targets=[sample])
    picture.take(received(sampled, TARGET))
    picture.take(received(decided(5, Limiter.RATE), TARGET, 7))
    picture.take(received(allocated({H100: (0, 2), A100: (3, 1)}), MIX, 8))
    rows = {row.target: row for row in picture.top(0).targets}
    assert list(rows) == sorted(map(str, (TARGET, H100, A100)))
    chat = rows[str(TARGET)]
    assert (chat.desired, chat.replicas, chat.ready, chat.policy) == (2, 2, 1, str(BINDING))
    assert (chat.last_decision, chat.last_decision_ms) == ("1 → 5 held by rate", 7000)
    assert chat.metrics == {"waiting": 4.5}
    assert rows[str(A100)].last_decision == "3 → 1"
    assert rows[str(H100)].policy == str(MIX)


def test_a_scaled_role_has_a_row_of_its_own() -> None:
    picture = Picture()
    owner = ObjectKey("AutoscalingPolicy", "default", "roles")
    body = {
        "metrics": [{"metricName": "waiting", "targetValue": "2"}],
        "disaggregatedTarget": {
            "targetRef": {"name": "chat"},
            "roles": {"decode": {"minReplicas": 1, "maxReplicas": 4}},
        },
    }
    data = SpecChanged(
        uid="p",
        generation=1,
        digest="d",
        object={
            "apiVersion": "workload.serving.volcano.sh/v1alpha1",
            "kind": "AutoscalingPolicy",
            "metadata": {"name": "roles", "namespace": "default"},
            "spec": body,
        },
    )
    picture.take(received(data, owner))
    pods = [
        PodFact(name="p0", uid="1", phase="Running", ready=True, role="decode", role_id="decode-0"),
        PodFact(name="p1", uid="2", phase="Pending", role="decode", role_id="decode-1"),
    ]
    observed = WorkloadObserved(
        uid="u",
        generation=1,
        desired=2,
        replicas=2,
        roles=[RoleFact(name="decode", desired=3, ready=1)],
        pods=pods,
    )
    picture.take(received(observed, TARGET))
    rows = picture.top(0).targets
    assert [row.target for row in rows] == [str(TARGET), f"{TARGET}/decode"]
    assert (rows[1].desired, rows[1].replicas, rows[1].ready) == (6, 2, 1)


def test_a_workload_that_is_gone_has_no_row(picture: Picture) -> None:
    picture.take(received(WorkloadObserved(uid="u", generation=1, deleted=True), TARGET))
    assert str(TARGET) not in {row.target for row in picture.top(0).targets}


def test_routers_are_told_with_how_far_behind_they_are(picture: Picture) -> None:
    picture.take(received(RoutePublished(revision=9, digest="d", table_digest="t"), TARGET))
    picture.take(received(RoutePublished(revision=4, digest="d", table_digest="t"), H100))
    for revision in (3, 8):
        data = RouteAcknowledged(revision=revision, table_digest="t", lag_ms=12)
        picture.take(received(data, ObjectKey("Router", "_", "r-0"), revision))
    (row,) = picture.routers()
    assert (row.router, row.revision, row.published_revision, row.seen_ms) == ("r-0", 8, 9, 8000)


def test_the_last_decision_of_a_target_may_be_a_mixes() -> None:
    single, mix = decision(decided(4), H100, 5), decision(allocated({H100: (1, 2)}), MIX, 9)
    assert last_of_targets([mix, single]) == {H100: mix}
    assert in_few_words(mix, H100) == "1 → 2"
    assert in_few_words(single, H100) == "1 → 4"
