"""One-line mutants: each brings back a silence of the reference, and its tests must notice.

The number is that of autoscaling spec section 7. D22 has no compat mode: compat reproduces numbers,
never silence.
"""

from tests.support.mutants import Mutant


def _conditions(defect: str, old: str, new: str) -> Mutant:
    return Mutant(defect, "status/scaling_conditions", old, new)


def _sampling(defect: str, old: str, new: str) -> Mutant:
    return Mutant(defect, "status/sampling_conditions", old, new)


MUTANTS = (
    Mutant("AS_D18", "status/scaling", "(*problems, *refused.problems)", "problems"),
    Mutant("AS_D18", "status/scaling", "refused.uid == stored.uid", "refused.uid"),
    Mutant("AS_D22", "status/scaling", "        *scaling_conditions(intents, view),\n", ""),
    Mutant(
        "AS_D22",
        "status/samples",
        "            if was_stale or self._last.get(key) != metrics:\n",
        "            if True:\n",
    ),
    _conditions(
        "AS_D22",
        'return None if freeze is None else ("Frozen", str(freeze))',
        "return None",
    ),
    _conditions(
        "AS_D22",
        "    if answer.outcome is not ApplyOutcome.AWAITING_APPROVAL:\n",
        "    if answer.outcome is ApplyOutcome.AWAITING_APPROVAL:\n",
    ),
    _conditions(
        "AS_D22",
        "answer is None or answer.decision_id != wanted.decision_id:\n        return None\n"
        "    if answer.outcome is not ApplyOutcome.AWAITING_APPROVAL:",
        "answer is None:\n        return None\n"
        "    if answer.outcome is not ApplyOutcome.AWAITING_APPROVAL:",
    ),
    _sampling("AS_D22", "view.sampled_ms(key) <= STALE_MS]", "view.sampled_ms(key) >= 0]"),
    _sampling("AS_D22", "    if problems:\n", "    if False:\n"),
    _sampling("AS_D22", "if measured & load.metrics or (", "if measured or ("),
    _sampling("AS_D22", "[intent.targets] if intent.mix else", "[intent.targets] if True else"),
    _conditions("AS_D22", "    if step.before > step.after:\n", "    if True:\n"),
    _conditions("AS_D22", "one.name is limiter and one.before != one.after", "one.name is limiter"),
    Mutant(
        "AS_D23",
        "status/scaling",
        "    if problems:\n        return condition(READY",
        "    if not problems:\n        return condition(READY",
    ),
)
