"""The table of rules of ModelServing (modelserving spec 1.4; W numbers are that table's rows)."""

from collections.abc import Iterator

from inferbus_contracts.admission import rules_pods as pods
from inferbus_contracts.admission import rules_rollout as rollout
from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.repeated import repeated_names
from inferbus_contracts.admission.rule import Finding, Rule, accepted, error, warning
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.names import LABEL_LENGTH, is_dns1035_label, is_dns1123_label
from inferbus_contracts.resources.serving import (
    DEFAULT_SCHEDULER,
    ModelServing,
    PodTemplate,
    Role,
)

RESERVED_LABELS = "modelserving.volcano.sh/"
BUILT_IN_PLUGINS = frozenset({"demo-pod-tweaks", "lws-standard-labels"})
PLUGIN_TARGETS = frozenset({"", "All", "Entry", "Worker"})


def longest_pod_name(resource: ModelServing, role: Role) -> str:
    """The longest name that a pod of a role can get (modelserving spec 2.1), lower-cased."""
    parts = (resource.metadata.name, resource.spec.replicas, role.name, role.replicas)
    return "-".join(str(part) for part in (*parts, role.worker_replicas)).lower()


def _roles(resource: ModelServing) -> Iterator[tuple[str, Role]]:
    for index, role in enumerate(resource.spec.template.roles):
        yield f"spec.template.roles[{index}]", role


def _templates(resource: ModelServing) -> Iterator[tuple[str, PodTemplate]]:
    for path, role in _roles(resource):
        yield f"{path}.entryTemplate", role.entry_template
        if role.worker_template is not None:
            yield f"{path}.workerTemplate", role.worker_template


def derived_names_fit(resource: ModelServing) -> Iterator[Finding]:
    """Pod names are host names and become label values: at most 63 characters."""
    for path, role in _roles(resource):
        name = longest_pod_name(resource, role)
        if len(name) > LABEL_LENGTH:
            yield Finding(
                code=ErrorCode.BAD_NAME,
                field="metadata.name",
                message=f"pods of {path} would get names of {len(name)} characters, "
                f"{LABEL_LENGTH} are possible",
                value=name,
                remedy="shorten the name of the ModelServing or of the role",
            )


def service_names_fit(resource: ModelServing) -> Iterator[Finding]:
    """A role with workers gets a Service, named like its entry pod."""
    for path, role in _roles(resource):
        name = longest_pod_name(resource, role)
        if role.worker_template is not None and len(name) <= LABEL_LENGTH:
            yield from _service_name(resource, name, path)


def _service_name(resource: ModelServing, name: str, path: str) -> Iterator[Finding]:
    if not is_dns1123_label(name):
        yield Finding(
            code=ErrorCode.BAD_NAME,
            field="metadata.name",
            message=f"workers of {path} find their entry pod by a Service, and this can't be part "
            "of a Service's name",
            value=resource.metadata.name,
            remedy="use lower-case letters, digits and hyphens only",
        )


def names_portable(resource: ModelServing) -> Iterator[Finding]:
    """Names of Services begin with a letter (RFC 1035), and hold no dots."""
    for path, role in _roles(resource):
        name = longest_pod_name(resource, role)
        if len(name) <= LABEL_LENGTH and not is_dns1035_label(name):
            yield Finding(
                code=ErrorCode.BAD_NAME,
                field="metadata.name",
                message=f"a Service for pods of {path} can't be made everywhere: its name would "
                "begin with a digit, or hold a dot",
                value=resource.metadata.name,
                remedy="begin with a letter, and use letters, digits and hyphens only",
            )
            return


def role_names_distinct(resource: ModelServing) -> Iterator[Finding]:
    """Roles are told apart by name, and names of pods hold it in lower case (ruling F7)."""
    named = ((f"{path}.name", role.name.lower()) for path, role in _roles(resource))
    return repeated_names(named, "role")


def images_pullable(resource: ModelServing) -> Iterator[Finding]:
    """Images of containers (W4)."""
    for path, template in _templates(resource):
        yield from pods.images_pullable(template.spec, f"{path}.spec")


def containers_well_formed(resource: ModelServing) -> Iterator[Finding]:
    """Containers are a list of named mappings."""
    for path, template in _templates(resource):
        yield from pods.containers_well_formed(template.spec, f"{path}.spec")


def pods_have_containers(resource: ModelServing) -> Iterator[Finding]:
    """Every pod that will be made has something to run (W13 for workers)."""
    for path, role in _roles(resource):
        yield from pods.has_containers(role.entry_template.spec, f"{path}.entryTemplate.spec")
        if role.worker_replicas > 0 and role.worker_template is None:
            yield Finding(
                code=ErrorCode.MISSING_FIELD,
                field=f"{path}.workerTemplate",
                message=f"there are {role.worker_replicas} workers, and nothing says what they run",
                remedy="add workerTemplate, or set workerReplicas to 0",
            )
        elif role.worker_replicas > 0 and role.worker_template is not None:
            yield from pods.has_containers(role.worker_template.spec, f"{path}.workerTemplate.spec")


def gang_roles_exist(resource: ModelServing) -> Iterator[Finding]:
    """minRoleReplicas is about roles of the template (W12)."""
    gang = resource.spec.template.gang_policy
    names = {role.name for _, role in _roles(resource)}
    for name in gang.min_role_replicas if gang else {}:
        if name not in names:
            yield Finding(
                field=child("spec.template.gangPolicy.minRoleReplicas", name),
                message="there is no role of this name",
                remedy=f"use one of {', '.join(sorted(names))}",
            )


def gang_within_replicas(resource: ModelServing) -> Iterator[Finding]:
    """minRoleReplicas above the role's replicas is held to them (W12, defect D26)."""
    gang = resource.spec.template.gang_policy
    for _, role in _roles(resource):
        least = gang.min_role_replicas.get(role.name, 0) if gang else 0
        if least > role.replicas:
            yield Finding(
                field=child("spec.template.gangPolicy.minRoleReplicas", role.name),
                message=f"the role has {role.replicas} replicas, so that many count",
                value=least,
                remedy="make it at most the role's replicas",
            )


def gang_needs_volcano(resource: ModelServing) -> Iterator[Finding]:
    """Gangs and network topology are Volcano's (defect D28)."""
    template = resource.spec.template
    given = {"gangPolicy": template.gang_policy, "networkTopology": template.network_topology}
    for field, value in given.items():
        if value is not None and resource.spec.scheduler_name != DEFAULT_SCHEDULER:
            yield Finding(
                field=f"spec.template.{field}",
                message=f"the scheduler {resource.spec.scheduler_name!r} doesn't know it",
                remedy="set schedulerName to volcano, or remove it",
            )


def topology_one_shape(resource: ModelServing) -> Iterator[Finding]:
    """networkTopology has two shapes; groupPolicy counts when both are written."""
    topology = resource.spec.template.network_topology
    if topology is not None and topology.flat and (topology.group_policy or topology.role_policy):
        yield Finding(
            field="spec.template.networkTopology",
            message="mixes the shapes of v0.1.0 and v0.2.0",
            remedy="write groupPolicy and rolePolicy only",
        )


def labels_unreserved(resource: ModelServing) -> Iterator[Finding]:
    """Labels that selectors rely on are the platform's own (defect D35)."""
    for path, template in _templates(resource):
        for key in template.metadata.labels if template.metadata else {}:
            if key.startswith(RESERVED_LABELS):
                yield Finding(
                    field=child(f"{path}.metadata.labels", key),
                    message="the platform sets this label itself; its value is kept",
                    value=key,
                    remedy="remove the label",
                )


def plugins_known(resource: ModelServing) -> Iterator[Finding]:
    """Plugins by name and what they are for (W15)."""
    names = {role.name for _, role in _roles(resource)}
    for index, plugin in enumerate(resource.spec.plugins):
        path = f"spec.plugins[{index}]"
        scope = plugin.scope
        if plugin.name not in BUILT_IN_PLUGINS:
            yield Finding(
                code=ErrorCode.UNSUPPORTED,
                field=f"{path}.name",
                message="no plugin of this name is built in; it has no effect",
                value=plugin.name,
                remedy=f"use one of {', '.join(sorted(BUILT_IN_PLUGINS))}",
            )
        if scope is not None and (scope.target or "") not in PLUGIN_TARGETS:
            yield Finding(
                field=f"{path}.scope.target",
                message="matches no pod",
                value=scope.target,
                remedy="use All, Entry or Worker",
            )
        for position, name in enumerate(scope.roles if scope is not None else ()):
            if name not in names:
                yield Finding(
                    field=f"{path}.scope.roles[{position}]",
                    message="there is no role of this name",
                    value=name,
                    remedy=f"use one of {', '.join(sorted(names))}",
                )


def grace_period_positive(resource: ModelServing) -> Iterator[Finding]:
    """A negative grace period acts as none."""
    seconds = resource.spec.template.restart_grace_period_seconds
    if seconds < 0:
        yield Finding(
            field="spec.template.restartGracePeriodSeconds",
            message="is negative, which acts as 0",
            value=seconds,
            remedy="write 0 or more seconds",
        )


RULES: tuple[Rule, ...] = (
    error("MS-W1a", "modelserving 1.4 W1", "no such pod can be labelled", derived_names_fit),
    error("MS-W1b", "modelserving 1.4 W1", "workers couldn't find their entry", service_names_fit),
    warning("MS-W1c", "modelserving 1.4 W1", "it works without such a Service", names_portable),
    error("MS-W2", "modelserving 1.1; ruling F7", "pods would share a name", role_names_distinct),
    accepted("MS-W3", "modelserving 1.4 W3", "any scheduler will do"),
    error("MS-W4", "modelserving 1.4 W4", "it can't be pulled", images_pullable),
    error("MS-PODS", "modelserving 1.1", "no pod can be made of it", containers_well_formed),
    error("MS-W13", "modelserving 1.4 W13", "there is nothing to run", pods_have_containers),
    error("MS-W12a", "modelserving 1.4 W12", "the gang never has that role", gang_roles_exist),
    warning("MS-W12b", "modelserving 7 (D26)", "held to the replicas", gang_within_replicas),
    warning("MS-W15", "modelserving 1.4 W15", "upstream accepts any name", plugins_known),
    warning("MS-GANG", "modelserving 7 (D28)", "pods run all the same", gang_needs_volcano),
    warning("MS-TOPOLOGY", "ruling networkTopology", "either shape is read", topology_one_shape),
    warning(
        "MS-LABELS", "modelserving 7 (D35)", "the label is set all the same", labels_unreserved
    ),
    warning("MS-GRACE", "modelserving 1.1", "acts as 0 upstream", grace_period_positive),
    *rollout.RULES,
)
