"""One-line mutants of TLS and of the queues: each brings back a defect, and its tests must notice.

The number is that of routing spec section 9.2.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_04",
        "endpoint",
        'is_https = transport.protocol == "https"',
        "is_https = False",
    ),
    Mutant(
        "RT_11",
        "queue_ticket",
        "        return _ready_endpoints(router.fleet, found[1])\n",
        "        return None\n",
    ),
    Mutant(
        "RT_25",
        "policy_fairness",
        "        account.counter += charge\n",
        "",
    ),
    Mutant(
        "RT_25",
        "policy_fairness",
        "            account.counter = max(account.counter, level)\n",
        "            account.counter = max(account.counter, 0)\n",
    ),
    Mutant(
        "RT_25",
        "policy_fairness",
        "        while self._idle:\n",
        "        while False:\n",
    ),
    Mutant(
        "RT_25",
        "policy_room",
        "        if running >= self.most:\n",
        "        if True:\n",
    ),
    Mutant(
        "RT_26",
        "queues",
        "keeper.deadlines(LOOK_AGAIN_MS, Queues.look)",
        "keeper.deadlines(LOOK_AGAIN_MS, lambda queues: None)",
    ),
)
