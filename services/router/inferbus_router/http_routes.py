"""Which rule of the HTTPRoutes serves a request, and what its target becomes.

Pure. Precedence across routes as the Gateway API has it (routing spec 2.7): hostname, kind of path,
longer path, method, more headers, more query parameters, age, namespace and name, place in the
route. Invariant: the order is fixed when a route comes; finding a rule tests matches in that order
and takes the first that holds.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar
from urllib.parse import parse_qsl

from inferbus_contracts.events.route import HttpMatch, PathType, StringRule, UrlRewrite
from inferbus_router.gateways import GatewayListener, hostnames_for
from inferbus_router.matching import compile_text_test, first_value

_PATH_RANK = {PathType.EXACT: 0, PathType.PREFIX: 1, PathType.REGEX: 2}


class HttpRequest(Protocol):
    """What of a request matches look at."""

    @property
    def method(self) -> bytes: ...

    @property
    def path(self) -> str:
        """Without the query."""
        ...

    @property
    def target(self) -> bytes:
        """Path and query."""
        ...

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """(name in lower case, value), in order."""
        ...


class RoutedRule(Protocol):
    """A rule of an HTTPRoute."""

    @property
    def http(self) -> tuple["Match", ...]:
        """One of them must hold."""
        ...


class RoutedRoute(Protocol):
    """An HTTPRoute."""

    @property
    def name(self) -> str:
        """`namespace/name`."""
        ...

    @property
    def created_at_ms(self) -> int: ...

    @property
    def hostnames(self) -> tuple[str, ...]:
        """In lower case; none: any."""
        ...

    def holds_at(self, listener: GatewayListener | None) -> bool:
        """Whether it is attached there."""
        ...


RouteT = TypeVar("RouteT", bound=RoutedRoute)
RuleT = TypeVar("RuleT", bound=RoutedRule)


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """What a request must be like; all of it must hold."""

    path_type: PathType
    path: str
    """Of a prefix without the slash at its end."""
    method: bytes
    headers: tuple[tuple[bytes, Callable[[str], bool]], ...]
    query: tuple[tuple[str, Callable[[str], bool]], ...]
    _pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, entry: HttpMatch) -> "Match | None":
        """None for one whose pattern doesn't compile: it never holds."""
        pattern = None
        if entry.path_type is PathType.REGEX:
            try:
                pattern = re.compile(entry.path)
            except re.error:
                return None
        is_prefix = entry.path_type is PathType.PREFIX
        return cls(
            path_type=entry.path_type,
            path=entry.path.rstrip("/") if is_prefix else entry.path,
            method=entry.method.encode(),
            headers=tuple((name.lower().encode(), test) for name, test in _tests(entry.headers)),
            query=tuple(_tests(entry.query)),
            _pattern=pattern,
        )

    @property
    def rank(self) -> tuple[int, int, bool, int, int]:
        """The smaller is tried first."""
        return (
            _PATH_RANK[self.path_type],
            -len(self.path),
            not self.method,
            -len(self.headers),
            -len(self.query),
        )

    def holds(self, request: HttpRequest) -> bool:
        """Whether a request is like that."""
        if self.method and self.method != request.method:
            return False
        return self._fits(request.path) and self._has_headers(request) and self._has_query(request)

    def _fits(self, path: str) -> bool:
        if self._pattern is not None:
            return self._pattern.fullmatch(path) is not None
        if self.path_type is PathType.EXACT:
            return path == self.path
        return path == self.path or path.startswith(self.path + "/")

    def _has_headers(self, request: HttpRequest) -> bool:
        if not self.headers:
            return True
        headers = request.headers
        return all(_present(headers, name, test) for name, test in self.headers)

    def _has_query(self, request: HttpRequest) -> bool:
        if not self.query:
            return True
        text = request.target.partition(b"?")[2].decode("latin-1")
        given: dict[str, str] = {}
        for name, value in parse_qsl(text, keep_blank_values=True):
            given.setdefault(name, value)
        return all(name in given and test(given[name]) for name, test in self.query)


def _tests(rules: dict[str, StringRule]) -> Iterable[tuple[str, Callable[[str], bool]]]:
    for name, rule in rules.items():
        test = compile_text_test(rule)
        if test is not None:
            yield name, test


def _present(headers: list[tuple[bytes, bytes]], name: bytes, test: Callable[[str], bool]) -> bool:
    return any(other == name for other, _ in headers) and test(first_value(headers, name))


@dataclass(frozen=True, slots=True, eq=False)
class HttpCandidate(Generic[RouteT, RuleT]):
    """A match of a rule, with its place in the order."""

    route: RouteT
    rule: RuleT
    match: Match
    order: tuple[object, ...]


class HttpRoutes(Generic[RouteT, RuleT]):
    """All matches of all HTTPRoutes, by hostname, in order; never changed once made."""

    def __init__(self) -> None:
        self._by_host: dict[str, tuple[HttpCandidate[RouteT, RuleT], ...]] = {}

    def after(
        self, gone: Iterable[RouteT], new: Iterable[tuple[RouteT, tuple[RuleT, ...]]]
    ) -> Self:
        """Once these routes went and those came; only their hostnames are looked at."""
        left = set(gone)
        coming: dict[str, list[HttpCandidate[RouteT, RuleT]]] = {}
        for route, rules in new:
            for host in route.hostnames or ("",):
                coming.setdefault(host, []).extend(_candidates(route, rules))
        touched = {host for route in left for host in route.hostnames or ("",)} | coming.keys()
        routes = type(self)()
        routes._by_host = self._by_host.copy()
        for host in touched:
            staying = [one for one in self._by_host.get(host, ()) if one.route not in left]
            found = sorted([*staying, *coming.get(host, ())], key=lambda one: one.order)
            if found:
                routes._by_host[host] = tuple(found)
            else:
                routes._by_host.pop(host, None)
        return routes

    def find(
        self, listener: GatewayListener, host: str, request: HttpRequest
    ) -> HttpCandidate[RouteT, RuleT] | None:
        """The first that serves a request of a listener; None where none does."""
        for hostname in hostnames_for(host):
            for candidate in self._by_host.get(hostname, ()):
                if candidate.match.holds(request) and candidate.route.holds_at(listener):
                    return candidate
        return None


def _candidates(route: RouteT, rules: tuple[RuleT, ...]) -> Iterable[HttpCandidate[RouteT, RuleT]]:
    for place, rule in enumerate(rules):
        for number, match in enumerate(rule.http):
            order = (*match.rank, route.created_at_ms, route.name, place, number)
            yield HttpCandidate(route, rule, match, order)


def rewritten_target(rewrite: UrlRewrite, match: Match, target: bytes) -> bytes:
    """Path and query for the engine.

    A prefix is replaced by whole segments: what stands for it and what is left of the path are
    joined by one slash, whether either has one or not (routing spec, defect 28).
    """
    path, mark, query = target.partition(b"?")
    if rewrite.full_path is not None:
        path = rewrite.full_path.encode()
    elif rewrite.prefix is not None and match.path_type is PathType.PREFIX:
        rest = path[len(match.path.encode("latin-1")) :].lstrip(b"/")
        prefix = rewrite.prefix.encode().rstrip(b"/")
        path = prefix + b"/" + rest if rest or not prefix else prefix
    return path + mark + query
