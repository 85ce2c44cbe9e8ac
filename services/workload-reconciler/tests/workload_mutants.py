"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The number is that of section 7 of the modelserving spec (MS) or the autoscaling spec (AS).
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "AS_D23",
        "policy_scaling",
        "preconditions=Preconditions(uid=decision.uid, generation=target.generation),",
        "preconditions=Preconditions(uid=decision.uid),",
    ),
    Mutant(
        "AS_D23",
        "policy_scaling",
        "    if target.generation == decision.generation:",
        "    if target.generation >= decision.generation:",
    ),
    Mutant(
        "AS_D23",
        "policy_scaling",
        "conflict = any(one.code is ErrorCode.CONFLICT for one in reply.problems)",
        "conflict = False",
    ),
    Mutant(
        "MS_D1",
        "policy_revisions",
        '    content = {\n        "name"',
        '    content = {\n        **role,\n        "name"',
    ),
    Mutant("MS_D1", "policy_adoption", "    if equal:\n", "    if False:\n"),
    Mutant("MS_D2", "policy_members", "    if policy is not RecoveryPolicy.NONE:", "    if True:"),
    Mutant(
        "MS_D5",
        "policy_census",
        "running=_has_shape(present, shape) and",
        "running=_has_shape(present, book.newest_shape()) and",
    ),
    Mutant("MS_D6", "policy_templates", "kept if spec is None else spec.replicas", "kept"),
    Mutant(
        "MS_D7",
        "policy_steps",
        "    if book.history.get(book.target) is None:",
        "    if book.history.get(book.target) is None and decisions.groups.added:",
    ),
    Mutant("MS_D8", "policy_revisions", "if one.label not in kept)", "if one.label != max(kept))"),
    Mutant(
        "MS_D9",
        "policy_status",
        "return target if not previous or (done and len(standing) >= limits.wanted) else previous",
        "return target",
    ),
    Mutant(
        "MS_D10",
        "policy_groups",
        "others = [one for one in candidates if one.ordinal >= partition]",
        "others = sorted(candidates)[partition:]",
    ),
    Mutant(
        "MS_D11",
        "policy_census",
        "running=complete and not surplus and all(pod.ready for pod in live)",
        "running=complete and not surplus",
    ),
    Mutant(
        "MS_D12",
        "policy_decisions",
        "running=status.running and decision.changes_nothing",
        "running=status.running",
    ),
    Mutant("MS_D13", "policy_recovery", "pod.restarts > forgiven_restarts", "pod.restarts > 0"),
    Mutant("MS_D13", "observed", 'if container.get("restartPolicy") == "Always"', "if False"),
    Mutant(
        "MS_D14",
        "policy_recovery",
        "return min(FIRST_DELAY_MS << doublings, LONGEST_DELAY_MS)",
        "return 0 * doublings",
    ),
    Mutant(
        "MS_D15",
        "core",
        "    placed = place_pods(workload, observed.pods)",
        "    placed = place_pods(workload, observed.pods[: workload.replicas or 1 // 0])",
    ),
    Mutant(
        "MS_D17",
        "policy_roles",
        "        if book.per_role:\n            removed |= _replace",
        "        if book.per_role and group.running:\n            removed |= _replace",
    ),
    Mutant(
        "MS_D18",
        "policy_census",
        "        if is_owned(pod.owner, workload)\n        and",
        "        if",
    ),
    Mutant("MS_D19", "policy_steps", "        if due_ms <= now_ms:", "        if False:"),
    Mutant("MS_D21", "core", "generation=workload.generation", "generation=0"),
    Mutant(
        "MS_D22",
        "policy_status",
        "return self.current_revision != self.update_revision and any(",
        "return self.current > self.partition and any(",
    ),
    Mutant(
        "MS_D23",
        "policy_status",
        "if self.partition == 0 and resting:",
        "if self.partition == 0 and resting and not self.groups:",
    ),
    Mutant(
        "MS_D24",
        "policy_budget",
        "return max(resolve(value, total, round_up=False), 0 if surge else 1)",
        "return resolve(value, total, round_up=False)",
    ),
    Mutant(
        "MS_D24",
        "policy_fleet",
        "ordinal not in outdated and (",
        "ordinal >= limits.partition and ordinal not in outdated and (",
    ),
    Mutant(
        "MS_D25",
        "policy_budget",
        "return max(0, present - max(0, wanted - limit) - unavailable)",
        "assert wanted\n    return max(0, present - max(0, wanted - limit) - unavailable)",
    ),
    Mutant(
        "MS_D27",
        "policy_pods",
        "    missing = volcano is False and",
        "    missing = volcano is None and",
    ),
    Mutant("MS_D35", "policy_pods", "    labels = {\n        **template.labels,", "    labels = {"),
    Mutant("MS_D36", "policy_plugins", "    if problems:\n", "    if False:\n"),
    Mutant(
        "MS_D38",
        "policy_status",
        "return min(counts, key=lambda ordinal: (-counts[ordinal], ordinal), default=0)",
        "return 0 * len(counts)",
    ),
    Mutant(
        "MS_D26",
        "policy_gang",
        "least = min(workload.gang.min_role_replicas.get(name, replicas), replicas)",
        "least = workload.gang.min_role_replicas.get(name, replicas)",
    ),
    Mutant(
        "MS_D28", "policy_gang_doubts", "if workload.gang.stated else None", "if False else None"
    ),
    Mutant("MS_D28", "policy_gang_doubts", "if used and held and field not in held", "if False"),
    Mutant(
        "MS_D29",
        "policy_pod_groups",
        "gang_roles(workload, group, group.shape)",
        "gang_roles(workload, group, decisions.book.newest_shape())",
    ),
    Mutant(
        "MS_D29",
        "policy_gang",
        "return min((wanted.template, *standing), key=lambda template: template.size)",
        "return wanted.template if standing else None",
    ),
    Mutant(
        "MS_D30",
        "policy_resources",
        '{**_read(resources.get("limits")), **_read(resources.get("requests"))}',
        '_read(resources.get("requests"))',
    ),
    Mutant(
        "MS_D30",
        "policy_resources",
        "        starting = _larger(starting, during)\n",
        "        starting = {}\n",
    ),
    Mutant(
        "MS_D31",
        "policy_merge",
        "same_quantity(stored[name], wanted[name]) for",
        "stored[name] == wanted[name] for",
    ),
    Mutant(
        "MS_D31",
        "policy_merge",
        "return (stored or DEFAULT_QUEUE) == (wanted or DEFAULT_QUEUE)",
        "return bool(stored == wanted)",
    ),
    Mutant(
        "MS_D31",
        "policy_pod_groups",
        '        wanted["spec"] = stored_form(wanted["spec"], schema)\n',
        "        assert stored_form and schema\n",
    ),
    Mutant(
        "MS_D33",
        "policy_gang_doubts",
        "    if pod.annotations.get(POD_SETTINGS, settings) != settings:",
        "    if False:",
    ),
    Mutant("MS_D33", "policy_gang_doubts", "    if own != scheduler:", "    if False:"),
    Mutant(
        "MS_D34",
        "policy_gang",
        "topology = workload.gang.role_topology if own is None else own",
        "topology = workload.gang.role_topology if own else None",
    ),
    Mutant("MS_D45", "policy_gang_parsing", '.get(QUEUE, str, "")', '.get("queue", str, "")'),
    Mutant(
        "MS_D47",
        "policy_census",
        "        if is_owned(pod.owner, workload)\n        and",
        "        if",
    ),
    Mutant(
        "MS_D47",
        "policy_pod_groups",
        "elif is_owned(group.owner, workload) and group.name not in named:",
        "elif group.name not in named:",
    ),
)
