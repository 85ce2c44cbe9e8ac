"""The core as its shell sees it: when it speaks, when it is silent, what it forgets."""

from dataclasses import replace

from inferbus_contracts.deciding import ClearTimer, SetTimer, Woken
from inferbus_contracts.events.scaling import Limiter
from inferbus_optimizer.core import decide
from inferbus_optimizer.events import Demanded
from inferbus_optimizer.facts import Facts
from inferbus_optimizer.outcomes import Allocate
from inferbus_optimizer.state import MixState
from services.optimizer.tests.builders import A100, H100, POLICY, START_MS, T0, Mixer, demand, facts

MINUTE_MS = 60_000


def test_a_demand_is_allocated() -> None:
    _, effects = decide(MixState(), Demanded(demand=demand(8.0)), facts(), T0)
    (effect,) = effects
    assert isinstance(effect, Allocate)
    assert effect.policy == POLICY
    told = [(a.target, a.uid, a.current, a.desired) for a in effect.data.allocations]
    assert told == [(H100, f"uid of {H100}", 0, 2), (A100, f"uid of {A100}", 1, 1)]
    assert (effect.data.cost, effect.data.optimal_cost) == (260, 260)


def test_the_same_demand_again_changes_nothing_at_all() -> None:
    mixer = Mixer(2, 1)
    mixer.demand(8.0)
    before = mixer.state
    mixer.demand(8.0)
    assert mixer.state is before
    assert len(mixer.allocations) == 1


def test_an_old_allocation_is_made_again() -> None:
    mixer = Mixer(2, 1)
    mixer.demand(8.0)
    mixer.advance(10 * MINUTE_MS)
    mixer.demand(8.0)
    assert len(mixer.allocations) == 2


def test_a_kept_mix_is_switched_by_a_timer_when_that_pays() -> None:
    """T0: eight A100 at 480 instead of 260; two starts of a minute at 100, 200 % of them."""
    mixer = Mixer(0, 8)
    assert mixer.demand(8.0) == (0, 8)
    assert mixer.allocations[0].record.binding is Limiter.STABILISATION
    due_ms = T0 + -(-2 * 2 * 100 * START_MS // 220)
    assert mixer.timer_ms == due_ms
    mixer.advance(due_ms - T0 - 1)
    assert mixer.replicas == {H100: 0, A100: 8}
    mixer.advance(1)
    assert mixer.replicas == {H100: 2, A100: 1}
    assert mixer.timer_ms is None


def test_regret_is_carried_over_changes_of_the_demand() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    first_ms = mixer.timer_ms
    mixer.advance(30_000)
    mixer.demand(7.9)
    assert mixer.timer_ms == first_ms


def test_a_timer_is_cleared_when_the_mix_has_become_optimal() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    mixer.demand(1.0)
    assert mixer.replicas == {H100: 0, A100: 1}
    assert mixer.timer_ms is None


def test_a_timer_that_was_replaced_does_nothing() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    before = mixer.state
    after, effects = decide(before, Woken(due_ms=T0 + 1), mixer.facts(), T0 + 1)
    assert after is before
    assert effects == ()


def test_the_timer_is_asked_for_with_the_allocation() -> None:
    _, effects = decide(MixState(), Demanded(demand=demand(8.0, a100=8)), facts(), T0)
    assert [type(effect) for effect in effects] == [Allocate, SetTimer]


def test_a_freeze_is_told_and_ends_with_its_end() -> None:
    mixer = Mixer(0, 5)
    mixer.changes = {"frozen": (H100,)}
    assert mixer.demand(8.0) == (0, 8)
    assert mixer.allocations[-1].record.binding is Limiter.FREEZE
    mixer.changes = {}
    assert mixer.demand(12.0) == (1, 8)


def test_upstream_s_blocks_on_request() -> None:
    compat = facts()
    assert compat.policy is not None
    compat = replace(compat, policy=replace(compat.policy, compat=True))
    _, effects = decide(MixState(), Demanded(demand=demand(8.0)), compat, T0)
    (effect,) = effects
    assert isinstance(effect, Allocate)
    assert [a.desired for a in effect.data.allocations] == [4, 4]


def test_without_a_policy_all_is_forgotten() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    gone = Facts(policy=None)
    assert decide(mixer.state, Woken(due_ms=1), gone, T0) == (MixState(), (ClearTimer(),))
    assert decide(MixState(), Woken(due_ms=1), gone, T0) == (MixState(), ())


def test_another_policy_of_the_same_name_starts_afresh() -> None:
    mixer = Mixer(0, 8)
    mixer.demand(8.0)
    mixer.advance(30_000)
    other = mixer.facts()
    assert other.policy is not None
    other = replace(other, policy=replace(other.policy, uid="another"))
    event = Demanded(demand=demand(8.0, a100=8))
    after, _ = decide(mixer.state, event, other, mixer.now_ms)
    assert after.regret.since_ms == mixer.now_ms
