"""What an allocation rests on beside the demand: the policy's own wishes, freezes, settings.

Plain frozen data; a field's default never changes its meaning, for fields at their default are left
out of the JSON.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PolicyFacts:
    """The policy that mixes the targets."""

    key: str
    uid: str
    digest: str
    compat: bool = False
    """Fill in upstream's block order instead of at the least cost."""


@dataclass(frozen=True, kw_only=True)
class DeciderSettings:
    """Knobs of the decider itself, virtual time."""

    repeat_ms: int = 600_000
    """An allocation is made again at least that often while demands arrive."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything an allocation of one policy may look at."""

    policy: PolicyFacts | None
    """None: the policy doesn't exist (any more)."""
    frozen: tuple[str, ...] = ()
    """Keys of targets that a freeze is in force for."""
    decision_id: str = ""
    """Id of the policy's last allocation, as stored beside its state."""
    settings: DeciderSettings = field(default_factory=DeciderSettings)
