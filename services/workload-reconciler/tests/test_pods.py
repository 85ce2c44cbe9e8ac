"""Pods as they are created (modelserving spec 2.2 to 2.5, 2.11; rulings F13, topology spread)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from workload_builders import leader_worker_set, pod_template, role, serving, workload

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.policy_plugins import Hook, apply_plugins
from inferbus_workload_reconciler.policy_pods import render_pod
from inferbus_workload_reconciler.workload import Plugin, Slot, WorkloadSpec

DOMAIN = "modelserving.volcano.sh"
ENTRY, WORKER = Slot(0, "prefill", 0, 0), Slot(0, "prefill", 0, 1)


def rendered(spec: WorkloadSpec, slot: Slot = ENTRY, **options: Any) -> Mapping[str, Any]:
    template = spec.roles[0].template
    return render_pod(spec, slot, template, "rev", **options)


def test_entry_and_workers_are_built_from_their_own_templates() -> None:
    roles = [role(workers=1, workerTemplate=pod_template("w", labels={"tier": "back"}))]
    spec = workload(1, roles)
    assert rendered(spec, ENTRY)["spec"]["containers"][0]["image"] == "a"
    worker = rendered(spec, WORKER)
    assert worker["spec"]["containers"][0]["image"] == "w"
    assert worker["metadata"]["labels"]["tier"] == "back"


def test_a_pod_carries_its_revision_its_role_hash_and_its_owner() -> None:
    spec = workload()
    metadata = rendered(spec)["metadata"]
    assert metadata["labels"][f"{DOMAIN}/revision"] == "rev"
    assert metadata["labels"][f"{DOMAIN}/role-template-hash"] == spec.roles[0].template.hash
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "workload.serving.volcano.sh/v1alpha1",
            "kind": "ModelServing",
            "name": "x",
            "uid": "ms-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_ms_d35_a_template_cannot_take_over_reserved_labels() -> None:
    labels = {f"{DOMAIN}/role": "mine", f"{DOMAIN}/revision": "mine", "team": "a"}
    spec = workload(1, [role(entryTemplate=pod_template("a", labels=labels))])
    found = rendered(spec)["metadata"]["labels"]
    assert found[f"{DOMAIN}/role"] == "prefill"
    assert found[f"{DOMAIN}/revision"] == "rev"
    assert found["team"] == "a"


def test_template_annotations_reach_the_pod() -> None:
    template = pod_template("a", annotations={"huawei.com/AscendReal": "0,1"})
    metadata = rendered(workload(1, [role(entryTemplate=template)]))["metadata"]
    assert metadata["annotations"] == {"huawei.com/AscendReal": "0,1"}


def test_injected_variables_come_last_and_replace_the_users_in_all_containers() -> None:
    env = [{"name": "WORKER_INDEX", "value": "user"}, {"name": "B", "value": "$(ENTRY_ADDRESS)"}]
    template = {
        "spec": {
            "containers": [{"name": "e", "env": env}, {"name": "runtime"}],
            "initContainers": [{"name": "downloader"}],
        }
    }
    spec = rendered(workload(1, [role(entryTemplate=template)]))["spec"]
    names = [one["name"] for one in spec["containers"][0]["env"]]
    assert names == ["B", "GROUP_SIZE", "ENTRY_ADDRESS", "WORKER_INDEX"]
    assert spec["containers"][0]["env"][-1]["value"] == "0"
    for container in (spec["containers"][1], spec["initContainers"][0]):
        assert [one["name"] for one in container["env"]] == names[1:]


def test_leader_worker_variables_come_first_so_that_the_users_can_use_them() -> None:
    env = [{"name": "LWS_WORKER_INDEX", "valueFrom": {}}, {"name": "B", "value": "1"}]
    worker = {"spec": {"containers": [{"name": "model-runner", "env": env}]}}
    spec = parse_workload(leader_worker_set(size=2, workerTemplate=worker))
    pod = render_pod(spec, Slot(1, "default", 0, 1), spec.roles[0].template, "rev")
    assert pod["spec"]["containers"][0]["env"] == [
        {"name": "LWS_LEADER_ADDRESS", "value": "p-1.p.default"},
        {"name": "LWS_GROUP_SIZE", "value": "2"},
        {"name": "LWS_WORKER_INDEX", "value": "1"},
        {"name": "B", "value": "1"},
    ]
    assert pod["metadata"]["annotations"] == {
        "leaderworkerset.sigs.k8s.io/size": "2",
        "leaderworkerset.sigs.k8s.io/leader-name": "p-1",
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("p-1-1", "p")


def test_ms_t65_what_the_template_says_passes_through_unread() -> None:
    aliases = [{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}]
    template = {"spec": {"containers": [], "hostAliases": aliases, "restartPolicy": "Never"}}
    spec = rendered(workload(1, [role(entryTemplate=template)]))["spec"]
    assert spec["hostAliases"] == aliases
    assert spec["restartPolicy"] == "Never"


def test_the_objects_scheduler_wins_over_the_templates() -> None:
    template = {"spec": {"schedulerName": "mine", "containers": []}}
    roles = [role(entryTemplate=template, workers=1, workerTemplate=template)]
    spec = parse_workload(serving(1, roles, schedulerName="default-scheduler"))
    for slot in (ENTRY, WORKER):
        assert rendered(spec, slot)["spec"]["schedulerName"] == "default-scheduler"


def test_without_volcano_the_default_scheduler_is_used() -> None:
    assert rendered(workload(), volcano=True)["spec"]["schedulerName"] == "volcano"
    assert "schedulerName" not in rendered(workload(), volcano=False)["spec"]


def test_an_empty_scheduler_name_means_the_substrates_own() -> None:
    template = {"spec": {"schedulerName": "mine", "containers": []}}
    spec = parse_workload(serving(1, [role(entryTemplate=template)], schedulerName=""))
    assert "schedulerName" not in rendered(spec, volcano=False)["spec"]


def test_ms_t86_without_gang_scheduling_pods_carry_nothing_of_volcano() -> None:
    document = serving(schedulerName="default-scheduler")
    document["spec"]["template"]["gangPolicy"] = {"minRoleReplicas": {"prefill": 1}}
    annotations = rendered(parse_workload(document), volcano=False)["metadata"]["annotations"]
    assert not [name for name in annotations if "volcano" in name or "scheduling" in name]


def test_a_leader_worker_set_keeps_its_templates_scheduler() -> None:
    worker = {"spec": {"schedulerName": "inftyai-scheduler", "containers": []}}
    spec = parse_workload(leader_worker_set(workerTemplate=worker))
    pod = render_pod(spec, Slot(0, "default", 0, 0), spec.roles[0].template, "rev")
    assert pod["spec"]["schedulerName"] == "inftyai-scheduler"


def spread(when: str) -> WorkloadSpec:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when}
    roles = [role(workers=1), role("decode")]
    return parse_workload(serving(2, roles, topologySpreadConstraints=[constraint]))


def test_the_representative_pod_of_each_group_is_spread() -> None:
    constraints = rendered(spread("DoNotSchedule"))["spec"]["topologySpreadConstraints"]
    labels = {f"{DOMAIN}/name": "x", f"{DOMAIN}/role-id": "prefill-0"}
    assert constraints == [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("DoNotSchedule", "requiredDuringSchedulingIgnoredDuringExecution"),
        ("ScheduleAnyway", "preferredDuringSchedulingIgnoredDuringExecution"),
    ],
)
def test_the_groups_other_pods_are_drawn_to_the_representative(when: str, kind: str) -> None:
    spec = rendered(spread(when), WORKER)["spec"]
    assert "topologySpreadConstraints" not in spec
    (term,) = spec["affinity"]["podAffinity"][kind]
    term = term.get("podAffinityTerm", term)
    assert term["topologyKey"] == "zone"
    assert term["labelSelector"]["matchLabels"][f"{DOMAIN}/group-name"] == "x-0"
    assert list(spec["affinity"]["podAffinity"]) == [kind]


def test_rendering_changes_neither_the_template_nor_the_next_pod() -> None:
    spec = spread("DoNotSchedule")
    assert rendered(spec, WORKER) == rendered(spec, WORKER)
    assert rendered(spec, ENTRY) == rendered(spec, ENTRY)


def marker(name: str) -> Hook:
    def mark(
        pod: Mapping[str, Any], plugin: Plugin, spec: WorkloadSpec, slot: Slot
    ) -> Mapping[str, Any]:
        return {**pod, "marks": [*pod.get("marks", []), name]}

    return mark


def plugin(name: str, target: str = "All", roles: tuple[str, ...] = ()) -> Plugin:
    return Plugin(name=name, config={}, roles=roles, target=target)


def with_plugins(*plugins: Plugin) -> WorkloadSpec:
    return replace(workload(), plugins=plugins)


@pytest.mark.parametrize(
    ("plugins", "slot", "marks"),
    [
        pytest.param([plugin("p1"), plugin("p2", "Worker")], ENTRY, ["p1"], id="MS_T73-entry"),
        pytest.param(
            [plugin("p1"), plugin("p2", "Worker")], WORKER, ["p1", "p2"], id="MS_T73-worker"
        ),
        ([plugin("p2", "Entry"), plugin("p1")], ENTRY, ["p2", "p1"]),
        ([plugin("p1", roles=("decode",))], ENTRY, []),
        ([plugin("p1", target="Nothing")], ENTRY, []),
    ],
)
def test_plugins_apply_in_order_and_within_their_scope(
    plugins: list[Plugin], slot: Slot, marks: list[str]
) -> None:
    hooks = {"p1": marker("p1"), "p2": marker("p2")}
    pod = apply_plugins({}, with_plugins(*plugins), slot, hooks)
    assert pod.get("marks", []) == marks


def test_ms_t73_an_error_in_a_plugin_ends_the_chain() -> None:
    def fail(*_: object) -> Mapping[str, Any]:
        raise RuntimeError("no")

    hooks: dict[str, Hook] = {"p1": fail, "p2": marker("p2")}
    with pytest.raises(RuntimeError, match="no"):
        apply_plugins({}, with_plugins(plugin("p1"), plugin("p2")), ENTRY, hooks)


def test_pod_tweaks_set_runtime_class_annotations_and_variables() -> None:
    config = {
        "runtimeClassName": "nvidia",
        "annotations": {"a": "1"},
        "env": [{"name": "A", "value": "1"}],
    }
    tweaks = {"name": "demo-pod-tweaks", "type": "BuiltIn", "config": config}
    pod = rendered(parse_workload(serving(plugins=[tweaks])))
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert pod["metadata"]["annotations"] == {"a": "1"}
    assert pod["spec"]["containers"][0]["env"][-1] == {"name": "A", "value": "1"}


def test_labels_of_an_owning_leader_worker_set() -> None:
    plugins = [{"name": "lws-standard-labels"}]
    document = serving(1, [role(workers=1)], name="lws", plugins=plugins)
    assert (
        "leaderworkerset.sigs.k8s.io/name"
        not in rendered(parse_workload(document))["metadata"]["labels"]
    )
    owner = {"kind": "LeaderWorkerSet", "name": "lws", "uid": "1"}
    document["metadata"]["ownerReferences"] = [owner]
    labels = rendered(parse_workload(document), WORKER)["metadata"]["labels"]
    assert labels["leaderworkerset.sigs.k8s.io/name"] == "lws"
    assert labels["leaderworkerset.sigs.k8s.io/worker-index"] == "1"
    assert labels["leaderworkerset.sigs.k8s.io/group-key"] == (
        "ccb20fa4c8d3cbd918e9c258a43eff009de805ae"
    )


@pytest.mark.parametrize(
    ("entry", "code", "field"),
    [
        ({"name": "nope"}, ErrorCode.MISSING_REFERENCE, "spec.plugins[0].name"),
        (
            {"name": "lws-standard-labels", "type": "Webhook"},
            ErrorCode.UNSUPPORTED,
            "spec.plugins[0].type",
        ),
        (
            {"name": "demo-pod-tweaks", "config": {"env": "A=1"}},
            ErrorCode.WRONG_TYPE,
            "spec.plugins[0].config.env",
        ),
    ],
)
def test_ms_d36_a_plugin_that_cannot_work_is_told_with_its_field(
    entry: dict[str, Any], code: ErrorCode, field: str
) -> None:
    with pytest.raises(ProblemsError) as raised:
        parse_workload(serving(plugins=[entry]))
    (problem,) = raised.value.problems
    assert (problem.code, problem.field) == (code, field)
    assert problem.object == "ModelServing/default/x"
