"""One-line mutants: each brings back a defect, and the defect's tests must notice.

The number is that of autoscaling spec section 7.
"""

from pathlib import Path

import inferbus_autoscaler
import inferbus_contracts
import inferbus_optimizer
from tests.support.mutants import Mutant

CONTRACTS, AUTOSCALER, OPTIMIZER = (
    Path(str(package.__file__)).parent
    for package in (inferbus_contracts, inferbus_autoscaler, inferbus_optimizer)
)

MUTANTS = (
    (
        CONTRACTS,
        Mutant(
            "AS_D18",
            "scaling/intent_reading",
            "targets.setdefault(target.key, target)",
            "targets[target.key._replace(name=f'{target.key.name}{index}')] = target",
        ),
    ),
    (AUTOSCALER, Mutant("AS_D18", "policy_check", "    if low > high and", "    if False and")),
    (
        AUTOSCALER,
        Mutant(
            "AS_D21",
            "policy_limits",
            "panic is None or panic.threshold_percent is None or",
            "panic is None or",
        ),
    ),
    (OPTIMIZER, Mutant("AS_D23", "core", "generation=standing.generation,", "generation=0,")),
    (
        OPTIMIZER,
        Mutant(
            "AS_D23",
            "policy_standing",
            "    if event.generation >= known.generation:",
            "    if False:",
        ),
    ),
    (
        OPTIMIZER,
        Mutant(
            "AS_D28",
            "policy_exact",
            "return sum(choice.cost * count for",
            "return 2**31 - 1 & sum(choice.cost * count for",
        ),
    ),
)
