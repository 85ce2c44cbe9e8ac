"""Which templates a group or a role replica follows.

A group is pinned to the templates it was built from until it is replaced as a whole; only replicas
are taken from the newest spec (defects MS_D3, MS_D5, MS_D6). With RoleRollingUpdate a group follows
the newest spec and the pin is on each role replica instead.

Invariant: what is built under a revision's label is built from that revision's templates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from inferbus_workload_reconciler.observed import ObservedPod
from inferbus_workload_reconciler.policy_revisions import RevisionHistory
from inferbus_workload_reconciler.workload import RoleTemplate, RolloutType, WorkloadSpec


class Freshness(Enum):
    """How a role replica relates to the newest templates."""

    CURRENT = "current"
    OUTDATED = "outdated"
    UNKNOWN = "unknown"
    """Its revision has no snapshot and its label can't be compared."""


class WantedRole(NamedTuple):
    """A role as one group should have it."""

    template: RoleTemplate
    replicas: int
    revision: str


Shape = tuple[WantedRole, ...]
"""All roles of a group, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateBook:
    """The newest templates and those of the past."""

    workload: WorkloadSpec
    history: RevisionHistory
    target: str
    """Label of the newest revision."""

    @property
    def per_role(self) -> bool:
        """Whether role replicas are replaced one by one, rather than groups."""
        return self.workload.rollout.type is RolloutType.ROLE

    def template(self, revision: str, role: str) -> RoleTemplate | None:
        """A role's template in a revision; None when there is no such role or no snapshot."""
        if revision == self.target:
            spec = self.workload.role(role)
            return None if spec is None else spec.template
        snapshot = self.history.get(revision)
        return None if snapshot is None else snapshot.role(role)

    def freshness(self, pod: ObservedPod, role: str) -> Freshness:
        """Whether a pod was built from the newest template of its role (defect MS_D4).

        The template's content decides; the revision's label alone does not, because a revision
        also changes when another role does.
        """
        newest = self.template(self.target, role)
        if newest is None:
            return Freshness.OUTDATED
        labels = pod.labels
        convention = self.workload.convention
        hash_label = convention.template_hash_label
        if hash_label is not None and labels.get(hash_label) == newest.hash:
            return Freshness.CURRENT
        revision = labels.get(convention.revision_label, "")
        if revision == self.target:
            return Freshness.CURRENT
        own = self.template(revision, role)
        if own is None:
            return Freshness.UNKNOWN
        return Freshness.CURRENT if own.meaning == newest.meaning else Freshness.OUTDATED

    def newest_shape(self) -> Shape:
        """The roles as the spec wants them now."""
        return tuple(
            WantedRole(role.template, role.replicas, self.target) for role in self.workload.roles
        )

    def shape(self, revision: str, present: Mapping[str, int]) -> Shape | None:
        """The roles of a group of that revision; None when its snapshot is lost.

        `present` counts its role replicas: a role that the newest spec has no more is neither
        scaled down before the group's turn nor left smaller than its snapshot says.
        """
        if self.per_role or revision == self.target:
            return self.newest_shape()
        snapshot = self.history.get(revision)
        if snapshot is None:
            return None
        roles = []
        for template in snapshot.roles:
            spec = self.workload.role(template.name)
            kept = max(snapshot.replicas.get(template.name, 1), present.get(template.name, 0))
            roles.append(WantedRole(template, kept if spec is None else spec.replicas, revision))
        return tuple(roles)
