"""One-line mutants of limits and authentication: each brings back a defect, and its tests must
notice.

The number is that of routing spec section 9.2.
"""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_06",
        "policy_limits",
        "            holding.output.charge(output_tokens - self.output_tokens)",
        "            pass",
    ),
    Mutant(
        "RT_06",
        "policy_shared_limits",
        "keep(KEYS[1], balance(KEYS[1], limit) - tonumber(ARGV[4]), limit)",
        "keep(KEYS[1], math.max(0, balance(KEYS[1], limit) - tonumber(ARGV[4])), limit)",
    ),
    Mutant(
        "RT_07",
        "policy_limits",
        "        return need.name, need.principal\n",
        '        return "", ""\n',
    ),
    Mutant(
        "RT_07",
        "limits",
        "        if limiter is None or is_shared != bool(limit.redis):",
        "        if True:",
    ),
    Mutant(
        "RT_07",
        "policy_limits",
        '            return self._refusal("output", output.wait_ms(1, now_ms))',
        "            if input_:\n"
        "                input_.charge(need.prompt_tokens)\n"
        '            return self._refusal("output", output.wait_ms(1, now_ms))',
    ),
    Mutant(
        "RT_07",
        "account",
        "            reservation.settle(0, 0)",
        "            reservation.settle(self.input_tokens, self.output_tokens)",
    ),
    Mutant(
        "RT_07",
        "shared_limits",
        "        if not self.link.is_up:\n            return self.alone(need, now_ms)",
        '        if not self.link.is_up:\n            return Refused("input", 1, 1, None)',
    ),
    Mutant(
        "RT_29",
        "router",
        "        if access.is_needed and ",
        '        if access.is_needed and head.path.startswith("/v1/") and ',
    ),
    Mutant(
        "RT_32",
        "access",
        "        if self._forward_credentials:",
        "        if True:",
    ),
    Mutant(
        "RT_32",
        "jwks",
        "        self._wanted.set()",
        "        pass",
    ),
)
