"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The number is that of autoscaling spec section 7.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "AS_D05",
        "policy_need",
        "    return _Load(load=load, unseen=stands.unready * weight, gaps=gaps)",
        "    return _Load(load=load, gaps=gaps)",
    ),
    Mutant(
        "AS_D20",
        "core",
        "    now_ms = max(now_ms, state.changed_ms)\n    after = _owned",
        "    after = _owned",
    ),
    Mutant(
        "AS_D18",
        "policy_check",
        "    if low > high and policy.compat is None:\n",
        "    if False:\n",
    ),
    Mutant("AS_D18", "refusals", "problems=list(problems))", "problems=[])"),
    Mutant(
        "AS_D21",
        "policy_limits",
        "    if panic is None or panic.threshold_percent is None or panic.hold_ms <= 0:",
        "    if panic.hold_ms <= 0:",
    ),
    Mutant(
        "AS_D21",
        "core",
        "    if policy is None:\n        return TargetState()",
        "    if policy is None and facts.policy:\n        return TargetState()",
    ),
    Mutant("AS_D22", "record", "metrics=_metric_readings(policy, found)", "metrics=[]"),
    Mutant("AS_D22", "record", "limiters=list(found.steps)", "limiters=[]"),
    Mutant(
        "AS_D23",
        "policy_standing",
        "answered.uid != target.uid or target.generation > answered.generation:",
        "answered.uid != target.uid:",
    ),
)

CONTRACT_MUTANTS = tuple(
    Mutant(defect, "scaling/settlement", "in sorted(wishes, key=_seniority):", "in wishes:")
    for defect in ("AS_D23", "AS_D24")
)
"""In the rules that every service shares."""
