"""What this router has going on at one endpoint, and how long a new prompt would wait there.

Prompts are counted by their uncached tokens, along a line on which each prompt has a mark behind
the ones sent before: a first token confirms all work up to the prompt's mark, and in between the
work is reckoned by the learned speed. So responses without a stream, whose first token nobody sees,
make no difference. Invariant: what a request adds is taken away once, however it ends, and an
endpoint without requests has no load.
"""

from inferbus_router.policy_ask import Ask
from inferbus_router.policy_ejection import Health
from inferbus_router.policy_prefixes import PrefixIndex
from inferbus_router.policy_speed import PrefillSpeed

RUNNING_REQUEST_TOKENS = 64
"""What one running request weighs beside waiting prompt tokens: decoding steps that prefill
shares.
"""


class Dispatch:
    """One request as it was sent to one endpoint."""

    __slots__ = ("mark", "new_tokens", "waits")

    def __init__(self, new_tokens: int, mark: int) -> None:
        self.new_tokens = new_tokens
        """Prompt tokens that the endpoint has to process."""
        self.mark = mark
        """All that was sent to the endpoint up to it, tokens."""
        self.waits = True
        """It has no first token."""


class EndpointLoad:
    """What is predicted about one endpoint."""

    def __init__(self, pod: str, fleet_speed: PrefillSpeed | None = None) -> None:
        self.pod = pod
        self.in_flight = 0
        """Requests sent and not ended."""
        self.waiting_prompt_tokens = 0
        """Uncached prompt tokens of those that have no first token yet."""
        self.health = Health()
        self.speed = PrefillSpeed(fleet_speed)
        self.prefixes: PrefixIndex[EndpointLoad] | None = None
        """Where prompts that are sent are remembered; None: nowhere."""
        self._sent_tokens = 0
        self._done_tokens = 0
        self._done_ms = 0

    def started(self, ask: Ask, now_ms: int) -> Dispatch:
        """A request is sent."""
        if not self.in_flight:
            self._done_tokens = self._sent_tokens
        if self._done_tokens >= self._sent_tokens:
            self._done_ms = now_ms
        cached = 0
        if self.prefixes is not None and ask.is_hashed:
            cached = ask.tokens_of(self.prefixes.sent(self, ask.blocks))
        new_tokens = max(ask.prompt_tokens - cached, 1)
        self.in_flight += 1
        self.waiting_prompt_tokens += new_tokens
        self._sent_tokens += new_tokens
        if self.health.ejected_until_ms:
            self.health.probing = True
        return Dispatch(new_tokens, self._sent_tokens)

    def first_token(self, dispatch: Dispatch, now_ms: int) -> None:
        """Its first token is seen: the prompt is processed, and so are those before it."""
        if not dispatch.waits:
            return
        self._processed(dispatch)
        done_tokens = dispatch.mark - self._done_tokens
        if done_tokens > 0:
            self.speed.learn(done_tokens, now_ms - self._done_ms)
            self._done_tokens, self._done_ms = dispatch.mark, now_ms

    def _processed(self, dispatch: Dispatch) -> None:
        dispatch.waits = False
        self.waiting_prompt_tokens -= dispatch.new_tokens

    def ended(self, dispatch: Dispatch) -> None:
        """It is over, however it went."""
        if dispatch.waits:
            self._processed(dispatch)
            self._done_tokens = max(self._done_tokens, min(dispatch.mark, self._sent_tokens))
        self.in_flight -= 1

    def predicted_wait_ms(self, now_ms: int) -> float:
        """How long until an engine would begin with another prompt."""
        return max(
            0.0,
            (self._sent_tokens - self._done_tokens) * self.speed.ms_per_token
            - (now_ms - self._done_ms),
        )

    def predicted_load(self) -> int:
        """Work ahead of a new request, in tokens."""
        return self.waiting_prompt_tokens + RUNNING_REQUEST_TOKENS * self.in_flight
