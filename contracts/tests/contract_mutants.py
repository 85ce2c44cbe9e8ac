"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The number is that of autoscaling spec section 7.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "AS_D18",
        "admission/rules_targets",
        "    if target.min_replicas > target.max_replicas:\n",
        "    if False:\n",
    ),
    Mutant(
        "AS_D18", "admission/rules_targets", "        if identity in seen:\n", "        if 0:\n"
    ),
    Mutant(
        "AS_D26",
        "resources/autoscaling",
        "    period: Duration | None = None\n",
        "    period: Duration\n",
    ),
    Mutant(
        "AS_D27",
        "admission/defaults",
        '    "panicThresholdPercent": 200,\n    "panicModeHold": "0s",',
        '    "panicThresholdPercent": 200,\n    "panicModeHold": "60s",',
    ),
)
