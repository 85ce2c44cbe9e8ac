"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The number is that of modelserving spec section 7. A mutant replaces text that stands exactly once
in its module.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A defect put back."""

    defect: str
    module: str
    old: str
    new: str

    @property
    def selector(self) -> str:
        """Selects the defect's tests."""
        return f"ms_{self.defect.lower()}_"


MUTANTS = (
    Mutant(
        "D1",
        "policy_revisions",
        '    content = {\n        "name"',
        '    content = {\n        **role,\n        "name"',
    ),
    Mutant("D1", "policy_adoption", "    if equal:\n", "    if False:\n"),
    Mutant("D2", "policy_members", "    if policy is not RecoveryPolicy.NONE:", "    if True:"),
    Mutant(
        "D5",
        "policy_census",
        "running=_has_shape(present, shape) and",
        "running=_has_shape(present, book.newest_shape()) and",
    ),
    Mutant("D6", "policy_templates", "kept if spec is None else spec.replicas", "kept"),
    Mutant(
        "D7",
        "policy_steps",
        "    if book.history.get(book.target) is None:",
        "    if book.history.get(book.target) is None and decisions.groups.added:",
    ),
    Mutant("D8", "policy_revisions", "if one.label not in kept)", "if one.label != max(kept))"),
    Mutant(
        "D9",
        "policy_status",
        "return target if not previous or (done and len(standing) >= limits.wanted) else previous",
        "return target",
    ),
    Mutant(
        "D10",
        "policy_groups",
        "others = [one for one in candidates if one.ordinal >= partition]",
        "others = sorted(candidates)[partition:]",
    ),
    Mutant(
        "D11",
        "policy_census",
        "running=complete and not surplus and all(pod.ready for pod in live)",
        "running=complete and not surplus",
    ),
    Mutant(
        "D12",
        "policy_decisions",
        "running=status.running and decision.changes_nothing",
        "running=status.running",
    ),
    Mutant("D13", "policy_recovery", "pod.restarts > forgiven_restarts", "pod.restarts > 0"),
    Mutant("D13", "observed", 'if container.get("restartPolicy") == "Always"', "if False"),
    Mutant(
        "D14",
        "policy_recovery",
        "return min(FIRST_DELAY_MS << doublings, LONGEST_DELAY_MS)",
        "return 0 * doublings",
    ),
    Mutant(
        "D15",
        "core",
        "    placed = place_pods(workload, observed.pods)",
        "    placed = place_pods(workload, observed.pods[: workload.replicas or 1 // 0])",
    ),
    Mutant(
        "D17",
        "policy_roles",
        "        if book.per_role:\n            removed |= _replace",
        "        if book.per_role and group.running:\n            removed |= _replace",
    ),
    Mutant(
        "D18",
        "policy_census",
        "        if is_owned(pod.owner, workload)\n        and",
        "        if",
    ),
    Mutant("D19", "policy_steps", "        if due_ms <= now_ms:", "        if False:"),
    Mutant("D21", "core", "generation=workload.generation", "generation=0"),
    Mutant(
        "D22",
        "policy_status",
        "return self.current_revision != self.update_revision and any(",
        "return self.current > self.partition and any(",
    ),
    Mutant(
        "D23",
        "policy_status",
        "if self.partition == 0 and resting:",
        "if self.partition == 0 and resting and not self.groups:",
    ),
    Mutant(
        "D24",
        "policy_budget",
        "return max(resolve(value, total, round_up=False), 0 if surge else 1)",
        "return resolve(value, total, round_up=False)",
    ),
    Mutant(
        "D24",
        "policy_fleet",
        "ordinal not in outdated and (",
        "ordinal >= limits.partition and ordinal not in outdated and (",
    ),
    Mutant(
        "D25",
        "policy_budget",
        "return max(0, present - max(0, wanted - limit) - unavailable)",
        "assert wanted\n    return max(0, present - max(0, wanted - limit) - unavailable)",
    ),
    Mutant(
        "D27",
        "policy_pods",
        "    missing = volcano is False and",
        "    missing = volcano is None and",
    ),
    Mutant("D35", "policy_pods", "    labels = {\n        **template.labels,", "    labels = {"),
    Mutant("D36", "policy_plugins", "    if problems:\n", "    if False:\n"),
    Mutant(
        "D38",
        "policy_status",
        "return min(counts, key=lambda ordinal: (-counts[ordinal], ordinal), default=0)",
        "return 0 * len(counts)",
    ),
)
