"""Token limits that several routers share: what they ask a Redis server, and how it answers.

Keys and fields are the reference's (routing spec 5), so that both kinds of routers can share one
server. Everything about a balance happens inside a script, by the server's own clock: both sides
are checked before either is charged, and a refusal writes nothing. Invariant: a key outlives the
time its bucket needs to be full again, so that no debt is forgotten, up to the longest expiry.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from inferbus_contracts.events.route import TokenLimit
from inferbus_router.policy_limits import Need, Refused, holder

LEAST_EXPIRY_SECONDS = 600
LONGEST_EXPIRY_SECONDS = 7_776_000

_TIME_AND_BALANCE = f"""
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local unit, least_expiry = tonumber(ARGV[1]), tonumber(ARGV[2])
local function balance(key, limit)
  local held = redis.call('HMGET', key, 'tokens', 'last_update')
  local tokens, updated = tonumber(held[1]), tonumber(held[2])
  if not tokens or not updated then return limit end
  return math.min(limit, tokens + math.max(0, now - updated) * limit / unit)
end
local function keep(key, tokens, limit)
  redis.call('HSET', key, 'tokens', string.format('%.6f', tokens),
    'last_update', string.format('%.6f', now))
  local full = math.ceil((limit - tokens) * unit / limit)
  local expiry = math.min(math.max(least_expiry, full), {LONGEST_EXPIRY_SECONDS})
  redis.call('EXPIRE', key, string.format('%d', expiry))
end
"""

RESERVE = (
    _TIME_AND_BALANCE
    + """
local wants = {tonumber(ARGV[4]), 1}
local tokens = {}
for side = 1, 2 do
  local limit = tonumber(ARGV[1 + 2 * side])
  if limit > 0 then
    tokens[side] = balance(KEYS[side], limit)
    local missing = wants[side] - tokens[side]
    if missing > 0.000001 then
      return {0, side, math.ceil(missing * unit * 1000 / limit)}
    end
  end
end
local output = 0
if tokens[1] then keep(KEYS[1], tokens[1] - wants[1], tonumber(ARGV[3])) end
if tokens[2] then
  output = math.min(tonumber(ARGV[6]), math.floor(tokens[2] + 0.000001))
  keep(KEYS[2], tokens[2] - output, tonumber(ARGV[5]))
end
return {1, output}
"""
)
"""KEYS: the input and the output side. ARGV: unit and least expiry in seconds; limit (0: none) and
tokens of the input side, then of the output side. Returns {1, reserved output tokens}, or {0, side,
milliseconds to wait}.
"""

CHARGE = (
    _TIME_AND_BALANCE
    + """
local limit = tonumber(ARGV[3])
keep(KEYS[1], balance(KEYS[1], limit) - tonumber(ARGV[4]), limit)
"""
)
"""KEYS: one side. ARGV: unit and least expiry in seconds, limit, tokens; less than 0 gives back."""

PRESENCE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
"""
"""KEYS: the set of routers. ARGV: this router, and after how many seconds one is taken for gone.
Returns how many there are.
"""

ROUTERS_KEY = "inferbus:ratelimit:routers"


class SharedKeys(NamedTuple):
    """The keys of one holder of a limit."""

    input: str
    output: str


class Charge(NamedTuple):
    """Tokens to take from one side."""

    key: str
    limit: int
    unit_seconds: int
    tokens: int
    """Less than 0 gives back."""


class Granted(NamedTuple):
    """The server let a request pass."""

    output_tokens: int
    """Reserved."""


def shared_keys(declared: TokenLimit, need: Need, route_name: str) -> SharedKeys:
    """`kthena:ratelimit:{model}:{input or output}`; a principal is added as a digest, because
    others can read what stands on that server.

    `route_name` stands for all names of the route where the limit doesn't tell them apart.
    """
    name, principal = holder(declared, need)
    text = name or route_name
    if principal:
        text += f"@{sha256(principal.encode()).hexdigest()[:32]}"
    return SharedKeys(f"kthena:ratelimit:{text}:input", f"kthena:ratelimit:{text}:output")


def expiry_seconds(unit_seconds: int) -> int:
    """How long an untouched key is kept (routing spec 5)."""
    return min(max(3 * unit_seconds, LEAST_EXPIRY_SECONDS), LONGEST_EXPIRY_SECONDS)


def reserve_arguments(declared: TokenLimit, need: Need, expected_output: int) -> tuple[int, ...]:
    """ARGV of `RESERVE`."""
    return (
        declared.unit_seconds,
        expiry_seconds(declared.unit_seconds),
        declared.input_tokens or 0,
        need.prompt_tokens,
        declared.output_tokens or 0,
        expected_output,
    )


def charge_arguments(charge: Charge) -> tuple[int, ...]:
    """ARGV of `CHARGE`."""
    unit_seconds = charge.unit_seconds
    return (unit_seconds, expiry_seconds(unit_seconds), charge.limit, charge.tokens)


def read_answer(declared: TokenLimit, answer: Sequence[Any]) -> Granted | Refused:
    """What `RESERVE` returned."""
    passed, *rest = (int(number) for number in answer)
    if passed:
        return Granted(rest[0])
    side, wait_ms = rest
    if side == 1:
        return Refused("input", declared.input_tokens or 0, declared.unit_seconds, wait_ms)
    return Refused("output", declared.output_tokens or 0, declared.unit_seconds, wait_ms)
