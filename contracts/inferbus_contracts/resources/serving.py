"""ModelServing: groups of pods, in roles, that serve one model together.

Invariant: the union of all versions (modelserving spec 1.1). Pod specs pass through untouched.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from inferbus_contracts.resources.document import ResourcePart
from inferbus_contracts.resources.metadata import LabelSelector, Resource, TemplateMetadata
from inferbus_contracts.resources.scalars import Count, Integer, IntOrPercent

DEFAULT_SCHEDULER = "volcano"


class RecoveryPolicy(StrEnum):
    """What is made anew when a pod fails."""

    SERVING_GROUP_RECREATE = "ServingGroupRecreate"
    ROLE_RECREATE = "RoleRecreate"
    NONE = "None"


class RolloutType(StrEnum):
    """What is replaced at a time when templates change."""

    SERVING_GROUP = "ServingGroupRollingUpdate"
    ROLE = "RoleRollingUpdate"
    """From v0.4.0 on."""


class TopologyMode(StrEnum):
    """Whether a network topology must, or should, be kept to."""

    HARD = "hard"
    SOFT = "soft"


class RollingUpdate(ResourcePart):
    """How many groups may be away or extra during a rollout."""

    max_unavailable: IntOrPercent = 1
    """Percentages of the groups, rounded down; may be 0 when `maxSurge` is not (ruling F6)."""
    max_surge: IntOrPercent = 0
    """Groups that may be there beyond the replicas."""
    partition: IntOrPercent | None = None
    """Groups below this ordinal keep the old template; percentages are rounded up."""


class RolloutStrategy(ResourcePart):
    """How changes of templates reach running groups."""

    type: RolloutType = RolloutType.SERVING_GROUP
    rolling_update_configuration: RollingUpdate | None = None


class TopologySpreadConstraint(ResourcePart):
    """Spreads groups over the domains of a topology key (v0.1.0; ruling "topology spread")."""

    max_skew: Integer
    """How many more groups one domain may have than another."""
    topology_key: str
    """Label of nodes whose values are the domains."""
    when_unsatisfiable: str
    """DoNotSchedule or ScheduleAnyway."""
    label_selector: LabelSelector | None = None
    """Absent means the representative pods of this ModelServing."""


class NetworkTopologySpec(ResourcePart):
    """How close together pods must be in the network."""

    mode: TopologyMode = TopologyMode.HARD
    highest_tier_allowed: Count | None = None
    """The highest tier of the network that may be spanned."""
    highest_tier_name: str | None = Field(default=None, max_length=253)
    """The same tier by name."""


class NetworkTopology(ResourcePart):
    """How close together pods must be: one level (v0.1.0), or groups and roles apart (v0.2.0)."""

    mode: TopologyMode | None = None
    highest_tier_allowed: Count | None = None
    """The highest tier of the network that one group may span."""
    highest_tier_name: str | None = Field(default=None, max_length=253)
    """The same tier by name."""
    group_policy: NetworkTopologySpec | None = None
    role_policy: NetworkTopologySpec | None = None

    @property
    def flat(self) -> bool:
        """Written in v0.1.0's shape."""
        return bool({"mode", "highest_tier_allowed", "highest_tier_name"} & self.model_fields_set)

    @property
    def effective_group_policy(self) -> NetworkTopologySpec | None:
        """The policy of groups; v0.1.0's shape is read as one, with its default tier of 1."""
        if self.group_policy is not None or not self.flat:
            return self.group_policy
        tier = self.highest_tier_allowed
        if tier is None and self.highest_tier_name is None:
            tier = 1
        return NetworkTopologySpec(
            mode=self.mode or TopologyMode.HARD,
            highest_tier_allowed=tier,
            highest_tier_name=self.highest_tier_name,
        )


class GangPolicy(ResourcePart):
    """How many replicas of each role must be schedulable together."""

    min_role_replicas: dict[str, Count] = Field(default_factory=dict)
    """By role; a missing role needs all its replicas (modelserving spec 4.3)."""


class PluginScope(ResourcePart):
    """Which pods a plugin is for."""

    roles: list[str] = Field(default_factory=list)
    """Empty means all roles."""
    target: str | None = None
    """All, Entry or Worker; absent or empty means All."""


class Plugin(ResourcePart):
    """A change to pods before they are created (v0.3.0)."""

    name: str
    """Name of the plugin."""
    type: str = Field(default="BuiltIn", pattern="^BuiltIn$")
    """BuiltIn: the plugin is part of the platform."""
    config: Any = None
    """Settings of the plugin."""
    scope: PluginScope | None = None


class PodTemplate(ResourcePart):
    """Metadata and spec of pods; the spec passes through."""

    metadata: TemplateMetadata | None = None
    spec: dict[str, Any] | None = None
    """Spec of the pods, as core/v1 has it; passed on as it is."""


class Role(ResourcePart):
    """One part of a group, e.g. prefill or decode."""

    name: str = Field(max_length=12, pattern="^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")
    """Digits may lead and capitals occur; derived names are lower-cased (ruling F7)."""
    replicas: Count = 1
    """Replicas of the role in one group."""
    entry_template: PodTemplate
    worker_replicas: Count
    """Worker pods per role replica, beside its entry pod."""
    worker_template: PodTemplate | None = None
    max_unavailable: IntOrPercent = 1
    """Role replicas that may be away at a time; only with RoleRollingUpdate (v1.0.0)."""
    partition: IntOrPercent | None = None
    """Only with RoleRollingUpdate (after v1.0.0)."""
    network_topology: NetworkTopologySpec | None = None
    """In place of the template's rolePolicy, for this role alone (proposed after v1.0.0)."""


class ServingTemplate(ResourcePart):
    """What one group consists of."""

    restart_grace_period_seconds: Integer = 0
    """How long a failed pod may recover before it is made anew."""
    gang_policy: GangPolicy | None = None
    network_topology: NetworkTopology | None = None
    roles: Annotated[list[Role], Field(min_length=1, max_length=4)]
    """Parts of a group, told apart by name."""


class ModelServingSpec(ResourcePart):
    """Groups of pods that serve one model."""

    replicas: Count = 1
    """Groups of pods."""
    scheduler_name: str = DEFAULT_SCHEDULER
    """The scheduler of the pods."""
    plugins: list[Plugin] = Field(default_factory=list)
    """Changes to pods, in order."""
    recovery_policy: RecoveryPolicy = RecoveryPolicy.ROLE_RECREATE
    rollout_strategy: RolloutStrategy | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] = Field(default_factory=list)
    """How groups are spread over the cluster."""
    template: ServingTemplate

    @property
    def rollout_type(self) -> RolloutType:
        """ServingGroupRollingUpdate unless the strategy says otherwise."""
        return self.rollout_strategy.type if self.rollout_strategy else RolloutType.SERVING_GROUP


class ModelServing(Resource):
    """A workload of groups of pods."""

    spec: ModelServingSpec
