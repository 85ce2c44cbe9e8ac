"""One-line mutants of the default scheduler: each brings back a defect, and the defect's tests must
notice.

The number is that of routing spec section 9.2.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant("RT_08", "policy_tokens", "_EXTRA_BYTE_EIGHTHS = 3", "_EXTRA_BYTE_EIGHTHS = 0"),
    Mutant(
        "RT_09",
        "policy_choice",
        "        tokens -= cached.get(load, 0)\n",
        "        tokens -= 0\n",
    ),
    Mutant(
        "RT_10",
        "policy_blocks",
        "xxh3_64_intdigest(view[start:end], chain)",
        "xxh3_64_intdigest(view[start:end])",
    ),
    Mutant(
        "RT_10", "policy_prompts", '_AHEAD = ("tools", "system", "instructions")', "_AHEAD = ()"
    ),
    Mutant("RT_11", "policy_blocks", "    chain = _seed(model)\n", '    chain = _seed("")\n'),
    Mutant(
        "RT_11", "exchange", "Ask(plan.destination.upstream_model,", "Ask(plan.destination.model,"
    ),
    Mutant(
        "RT_13",
        "policy_choice",
        "    ms_per_token = load.fleet_speed.ms_per_token * load.slowness.factor\n",
        "    ms_per_token = load.fleet_speed.ms_per_token\n",
    ),
    Mutant(
        "RT_14",
        "policy_load",
        "        self.waiting_prompt_tokens += new_tokens\n",
        "        self.waiting_prompt_tokens += 1\n",
    ),
    Mutant("RT_15", "policy_choice", "    if not running:\n", "    if True:\n"),
    Mutant(
        "RT_22",
        "policy_blocks",
        "    for end in BLOCK_ENDS:\n",
        "    for end in BLOCK_ENDS[:32]:\n",
    ),
    Mutant(
        "RT_22",
        "policy_prefixes",
        "        while self._count > self._most_blocks:\n",
        "        while False:\n",
    ),
    Mutant(
        "RT_22",
        "policy_peers",
        "                load.prefixes.sent(load, blocks)\n",
        "                pass\n",
    ),
    Mutant(
        "RT_23",
        "policy_choice",
        "        start = turn % len(candidates) if candidates else 0\n",
        "        start = 0\n",
    ),
    Mutant(
        "RT_27",
        "policy_peers",
        "            if now_ms - heard_ms > SILENT_AFTER_MS:\n",
        "            if False:\n",
    ),
    Mutant(
        "RT_27",
        "policy_choice",
        "load.in_flight if peers is None else load.in_flight + peers.running",
        "load.in_flight",
    ),
)
