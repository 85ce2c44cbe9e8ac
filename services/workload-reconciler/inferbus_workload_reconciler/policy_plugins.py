"""Built-in plugins: changes that a ModelServing asks to be made to its pods.

The chain and the two plugins are those of modelserving spec 2.11.

Invariant: a chain is applied in the order of `spec.plugins`, each plugin sees what the earlier ones
did, and none changes what it was given. Names and configuration are checked when the object is
parsed, so that a bad plugin is told once, with its field, and not once per pod.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_workload_reconciler import policy_naming_lws
from inferbus_workload_reconciler.workload import Plugin, Slot, WorkloadSpec

Manifest = Mapping[str, Any]
Hook = Callable[[Manifest, Plugin, WorkloadSpec, Slot], Manifest]


def parse_plugins(entries: Iterable[Mapping[str, Any]], object_key: str) -> tuple[Plugin, ...]:
    """Check the entries of `spec.plugins`.

    Raises `ProblemsError` naming every plugin that doesn't exist or whose configuration has a
    field of a wrong type.
    """
    plugins = []
    problems: list[Problem] = []
    for index, entry in enumerate(entries):
        scope = entry.get("scope") or {}
        plugin = Plugin(
            name=str(entry.get("name")),
            config=entry.get("config") or {},
            roles=tuple(scope.get("roles") or ()),
            target=scope.get("target") or "All",
        )
        plugins.append(plugin)
        problems += _problems(plugin, entry, f"spec.plugins[{index}]", object_key)
    if problems:
        raise ProblemsError(*problems)
    return tuple(plugins)


def apply_plugins(
    pod: Manifest,
    workload: WorkloadSpec,
    slot: Slot,
    hooks: Mapping[str, Hook] | None = None,
) -> Manifest:
    """The pod after the chain; an error in a plugin ends it and reaches the caller."""
    known = HOOKS if hooks is None else hooks
    for plugin in workload.plugins:
        if _in_scope(plugin, slot):
            pod = known[plugin.name](pod, plugin, workload, slot)
    return pod


def _in_scope(plugin: Plugin, slot: Slot) -> bool:
    """A target that isn't one of the three matches no pod."""
    if plugin.roles and slot.role not in plugin.roles:
        return False
    return plugin.target in ("All", "Entry" if slot.worker_index == 0 else "Worker")


def _tweak_pod(pod: Manifest, plugin: Plugin, workload: WorkloadSpec, slot: Slot) -> Manifest:
    """Runtime class, annotations and further variables; variables are not de-duplicated."""
    config = plugin.config
    spec = dict(pod["spec"])
    metadata = dict(pod["metadata"])
    if config.get("runtimeClassName"):
        spec["runtimeClassName"] = config["runtimeClassName"]
    if config.get("annotations"):
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **config["annotations"]}
    for containers in ("containers", "initContainers"):
        if config.get("env") and containers in spec:
            spec[containers] = [
                {**container, "env": [*(container.get("env") or ()), *config["env"]]}
                for container in spec[containers]
            ]
    return {**pod, "metadata": metadata, "spec": spec}


def _label_like_leader_worker_set(
    pod: Manifest, plugin: Plugin, workload: WorkloadSpec, slot: Slot
) -> Manifest:
    """Labels of LeaderWorkerSet, where one owns the ModelServing (modelserving spec 5.2)."""
    owner = workload.leader_worker_set
    if not owner:
        return pod
    key = hashlib.sha1(f"{owner}-{slot.group}".encode(), usedforsecurity=False).hexdigest()
    labels = {
        policy_naming_lws.NAME: owner,
        policy_naming_lws.GROUP_INDEX: str(slot.group),
        policy_naming_lws.WORKER_INDEX: str(slot.worker_index),
        policy_naming_lws.GROUP_KEY: key,
    }
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "labels": {**metadata["labels"], **labels}}}


HOOKS: Mapping[str, Hook] = {
    "demo-pod-tweaks": _tweak_pod,
    "lws-standard-labels": _label_like_leader_worker_set,
}
"""Every plugin by name."""

_CONFIG_TYPES: Mapping[str, Mapping[str, type]] = {
    "demo-pod-tweaks": {"runtimeClassName": str, "annotations": Mapping, "env": list},
    "lws-standard-labels": {},
}


def _problems(
    plugin: Plugin, entry: Mapping[str, Any], path: str, object_key: str
) -> Iterable[Problem]:
    def problem(code: ErrorCode, message: str, remedy: str, field: str, value: Any) -> Problem:
        return Problem(
            code=code,
            message=message,
            remedy=remedy,
            object=object_key,
            field=f"{path}.{field}",
            value=value,
        )

    known = f"use one of {', '.join(sorted(HOOKS))}"
    if plugin.name not in HOOKS:
        code = ErrorCode.MISSING_REFERENCE
        yield problem(code, "there is no such plugin", known, "name", plugin.name)
        return
    if (entry.get("type") or "BuiltIn") != "BuiltIn":
        code = ErrorCode.UNSUPPORTED
        yield problem(code, "only built-in plugins exist", "use BuiltIn", "type", entry["type"])
    for field, type_ in _CONFIG_TYPES[plugin.name].items():
        value = plugin.config.get(field)
        if value is not None and not isinstance(value, type_):
            code = ErrorCode.WRONG_TYPE
            remedy = "see the plugin's configuration"
            yield problem(
                code, "the plugin can't read this", remedy, f"config.{field}", plugin.config[field]
            )
