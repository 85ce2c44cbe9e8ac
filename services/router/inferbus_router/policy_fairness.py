"""Whose request is served next, so that everybody gets an equal share of one model's service.

Virtual token counters (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024;
routing spec 6.1 and defect 25): service is counted in weighted tokens, and the principal that had
least of it is next. What a request will take is charged when it is let go and settled when its
usage is known, so that requests under way count. Whoever had nothing waiting is lifted to those
that wait, and so can't save up a claim by staying away. Invariant: requests of one principal are
let go in the order they came; what is kept of principals that neither wait nor run is bounded in
number and time.
"""

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from inferbus_router.policy_queue import Applicant, Usage

T = TypeVar("T")

MOST_IDLE_PRINCIPALS = 10_000
"""Whose counters are kept while they have no request."""
_HEAP_SLACK = 64
_OUTPUT_MEMORY = 0.05
"""How much one request's output counts in the mean."""


@dataclass(frozen=True, slots=True)
class ServiceWeights:
    """What service is worth; all at least 0."""

    input_token: float = 1.0
    output_token: float = 2.0
    tokens: float = 1.0
    """Of weighted tokens as a whole, against that of a request."""
    request: float = 0.0

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """The service that a request gets."""
        weighted = self.input_token * input_tokens + self.output_token * output_tokens
        return self.request + self.tokens * weighted


@dataclass(eq=False, slots=True)
class _Account(Generic[T]):
    """One principal."""

    principal: str
    number: int
    """Tells accounts apart where all else is equal; the older is first."""
    counter: float = 0.0
    """Weighted service, charged or had."""
    waiting: dict[T, tuple[int, Applicant]] = field(default_factory=dict)
    """(number of its arrival, what it asks for), oldest first."""
    running: int = 0
    idle_since_ms: int = 0
    place: "_Place[T] | None" = None
    """Its valid entry among the places; None while it has nothing waiting."""


_Place = tuple[float, int, int, _Account[T]]
"""(counter, arrival of its oldest request, number, account)."""


class FairOrder(Generic[T]):
    """The `Order` of least service first."""

    def __init__(self, weights: ServiceWeights, memory_ms: int) -> None:
        """The counter of a principal without requests is kept for `memory_ms`."""
        self._weights = weights
        self._memory_ms = memory_ms
        self._arrivals = 0
        self._accounts: dict[str, _Account[T]] = {}
        self._idle: dict[str, _Account[T]] = {}
        """Those without requests, longest idle first."""
        self._of_waiting: dict[T, _Account[T]] = {}
        self._charged: dict[T, tuple[_Account[T], float]] = {}
        self._places: list[_Place[T]] = []
        """A heap; entries that their account no longer holds are void."""
        self._level = 0.0
        """The counter of the principal that was let go last: what newcomers start with while
        nobody waits.
        """
        self._mean_output = 0.0

    def __len__(self) -> int:
        return len(self._of_waiting)

    @property
    def principals(self) -> int:
        """How many are remembered."""
        return len(self._accounts)

    def join(self, item: T, applicant: Applicant, now_ms: int) -> None:
        """See `Order`."""
        self._forget(now_ms)
        account = self._account(applicant.principal)
        if not account.waiting:
            first = self._first()
            level = first.counter if first is not None else self._level
            account.counter = max(account.counter, level)
        self._arrivals += 1
        account.waiting[item] = (self._arrivals, applicant)
        self._of_waiting[item] = account
        if account.place is None:
            self._place(account)

    def head(self) -> T | None:
        """See `Order`."""
        account = self._first()
        return None if account is None else next(iter(account.waiting))

    def take(self, now_ms: int) -> T:
        """See `Order`."""
        account = self._first()
        assert account is not None
        item, (_, applicant) = next(iter(account.waiting.items()))
        del account.waiting[item], self._of_waiting[item]
        charge = self._expected(applicant)
        account.counter += charge
        account.running += 1
        self._level = account.counter
        self._charged[item] = (account, charge)
        self._place(account)
        return item

    def leave(self, item: T, now_ms: int) -> bool:
        """See `Order`."""
        account = self._of_waiting.pop(item, None)
        if account is None:
            return False
        del account.waiting[item]
        self._place(account)
        self._rest(account, now_ms)
        return True

    def ended(self, item: T, usage: Usage, now_ms: int) -> None:
        """See `Order`."""
        account, charge = self._charged.pop(item)
        account.counter -= charge
        if usage.input_tokens or usage.output_tokens:
            account.counter += self._weights.cost(usage.input_tokens, usage.output_tokens)
            self._mean_output += _OUTPUT_MEMORY * (usage.output_tokens - self._mean_output)
        account.running -= 1
        self._place(account)
        self._rest(account, now_ms)

    def _expected(self, applicant: Applicant) -> float:
        output = self._mean_output
        if applicant.max_output_tokens is not None:
            output = min(output, applicant.max_output_tokens)
        return self._weights.cost(applicant.prompt_tokens, output)

    # Accounts.

    def _account(self, principal: str) -> _Account[T]:
        account = self._accounts.get(principal)
        if account is None:
            account = self._accounts[principal] = _Account(principal, self._arrivals)
        self._idle.pop(principal, None)
        return account

    def _rest(self, account: _Account[T], now_ms: int) -> None:
        """It may have no request any more."""
        if account.waiting or account.running:
            return
        account.idle_since_ms = now_ms
        self._idle[account.principal] = account
        self._forget(now_ms)

    def _forget(self, now_ms: int) -> None:
        before_ms = now_ms - self._memory_ms
        while self._idle:
            account = next(iter(self._idle.values()))
            if account.idle_since_ms > before_ms and len(self._idle) <= MOST_IDLE_PRINCIPALS:
                return
            del self._idle[account.principal], self._accounts[account.principal]

    # Places.

    def _first(self) -> _Account[T] | None:
        places = self._places
        while places and places[0][3].place is not places[0]:
            heappop(places)
        return places[0][3] if places else None

    def _place(self, account: _Account[T]) -> None:
        """Its counter or its oldest request is another now."""
        if not account.waiting:
            account.place = None
            return
        arrival = next(iter(account.waiting.values()))[0]
        account.place = (account.counter, arrival, account.number, account)
        heappush(self._places, account.place)
        if len(self._places) > 2 * len(self._of_waiting) + _HEAP_SLACK:
            self._places = [place for place in self._places if place[3].place is place]
            heapify(self._places)
