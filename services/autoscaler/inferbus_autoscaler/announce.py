"""From an evaluation to the event that says it: the replicas of one target, or a mix's total."""

from inferbus_autoscaler.evaluation import Evaluation
from inferbus_autoscaler.facts import Facts, PolicyFacts
from inferbus_autoscaler.outcomes import Decide, Demand
from inferbus_autoscaler.policy_room import room_of
from inferbus_autoscaler.policy_standing import standing
from inferbus_autoscaler.record import CoreInput, record_of
from inferbus_autoscaler.state import TargetState
from inferbus_contracts.canonical import digest
from inferbus_contracts.events.scaling import ScalingDecided, ScalingDemanded, TargetOption


def announcement(
    given: CoreInput, policy: PolicyFacts, found: Evaluation, after: TargetState
) -> Decide | Demand:
    """What is published of `found`; `after` is the state that is stored with it."""
    record = record_of(given, policy, found, after)
    if policy.mix:
        return Demand(
            policy.key,
            ScalingDemanded(
                capacity=found.capacity,
                replicas=found.desired,
                current=found.current,
                mode=found.mode,
                apply=policy.apply.value,
                cost_expansion_rate_percent=policy.cost_expansion_rate_percent,
                capacity_source=policy.capacity_source,
                targets=options_of(after, policy, given.facts),
                record=record,
            ),
        )
    member = policy.targets[0]
    target = given.facts.target(member.key)
    assert target is not None, "a live policy's target is known"
    stands = standing(after, target)
    return Decide(
        member.key,
        ScalingDecided(
            current=found.current,
            desired=found.desired,
            mode=found.mode,
            apply=policy.apply.value,
            target_uid=stands.uid,
            target_generation=stands.generation,
            record=record,
        ),
    )


def options_of(state: TargetState, policy: PolicyFacts, facts: Facts) -> list[TargetOption]:
    """The targets of a mix as the optimizer needs them, in the policy's order."""
    options = []
    for member in policy.targets:
        target = facts.target(member.key)
        if target is None:
            continue
        stands = standing(state, target)
        room = room_of(state.rooms, target)
        options.append(
            TargetOption(
                target=member.key,
                uid=stands.uid,
                generation=stands.generation,
                current=stands.replicas,
                min_replicas=member.min_replicas,
                max_replicas=member.max_replicas,
                cost=member.cost,
                capacity=member.capacity,
                schedulable=room.limit if room else None,
                probe=True if room and room.probing else None,
                startup_ms=target.startup_ms,
            )
        )
    return options


def options_digest(state: TargetState, policy: PolicyFacts, facts: Facts) -> str:
    """Changes when the optimizer should hear of a mix though its total stays; empty otherwise."""
    if not policy.mix:
        return ""
    options = [option.to_dict() for option in options_of(state, policy, facts)]
    return digest([policy.cost_expansion_rate_percent, *options])
