"""The rules of an HTTPRoute as routers need them.

Invariant: what of a rule can't be done as it says is left out and named: a request is never served
as if it stood there differently (Gateway API v1; routing spec 2.7 with defect 28).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from inferbus_contracts.admission.rules_networking import pattern_fault
from inferbus_contracts.events.route import (
    HttpMatch,
    PathType,
    RuleEntry,
    StringRule,
    TargetShare,
    UrlRewrite,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.gateway_api import (
    HTTPBackendRef,
    HTTPRouteFilter,
    HTTPRouteMatch,
    HTTPRouteRule,
    NamedValueMatch,
)


@dataclass
class ReadHttpRules:
    """Rules that were read, and what is to be said about them."""

    namespace: str
    pools: list[ObjectKey] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)

    def rule(self, place: int, rule: HTTPRouteRule) -> Iterator[RuleEntry]:
        """What routers get of a rule: one entry, or none."""
        name = f'rule "{rule.name}"' if rule.name else f"rules[{place}]"
        fault = _filters_fault(rule)
        targets = [share for one in rule.backend_refs for share in self._share(one, name)]
        matches = [
            entry
            for number, match in enumerate(rule.matches or [HTTPRouteMatch()])
            for entry in self._match(match, f"{name}.matches[{number}]")
        ]
        if fault:
            self.left_out.append(f"{name}: {fault}")
        elif matches:
            rewrite = _rewrite(rule.filters)
            yield RuleEntry(name=rule.name, targets=targets, http=matches, rewrite=rewrite)

    def _share(self, reference: HTTPBackendRef, rule: str) -> Iterator[TargetShare]:
        fault = self._backend_fault(reference)
        if fault:
            self.unusable.append(f"{rule}: {fault}")
            return
        key = ObjectKey(kinds.INFERENCE_POOL, self.namespace, reference.name)
        if key not in self.pools:
            self.pools.append(key)
        yield TargetShare(server=str(key), weight=reference.weight)

    def _backend_fault(self, reference: HTTPBackendRef) -> str:
        if (reference.group, reference.kind) != (kinds.POOL_GROUP, kinds.INFERENCE_POOL):
            return f"{reference.kind} {reference.name} is no InferencePool"
        if reference.namespace not in (None, self.namespace):
            place = f"{reference.namespace}/{reference.name}"
            return f"InferencePool {place} is in another namespace, which nobody has granted"
        if reference.filters:
            return f"filters of the backend {reference.name} are not supported"
        return ""

    def _match(self, match: HTTPRouteMatch, name: str) -> Iterator[HttpMatch]:
        fault = _match_fault(match)
        if fault:
            self.left_out.append(f"{name}: {fault}")
            return
        yield HttpMatch(
            path_type=PathType(match.path.type),
            path=match.path.value,
            method=match.method,
            headers={one.name.lower(): _value_rule(one) for one in reversed(match.headers)},
            query={one.name: _value_rule(one) for one in reversed(match.query_params)},
        )


def _match_fault(match: HTTPRouteMatch) -> str:
    if match.path.type not in set(PathType):
        return f"path type {match.path.type} is not known"
    patterns = [match.path.value] if match.path.type == PathType.REGEX else []
    for one in (*match.headers, *match.query_params):
        if one.type not in ("Exact", PathType.REGEX):
            return f"type {one.type} of {one.name} is not known"
        if one.type == PathType.REGEX:
            patterns.append(one.value)
    faults = (pattern_fault(pattern) for pattern in patterns)
    return next((f"a pattern doesn't compile: {fault}" for fault in faults if fault), "")


def _value_rule(match: NamedValueMatch) -> StringRule:
    """A pattern is for the whole value."""
    if match.type == PathType.REGEX:
        return StringRule(regex=f"^(?:{match.value})$")
    return StringRule(exact=match.value)


def _filters_fault(rule: HTTPRouteRule) -> str:
    for one in rule.filters:
        if one.type != "URLRewrite" or one.url_rewrite is None:
            return f"filter {one.type} is not supported"
        path = one.url_rewrite.path
        if path is not None and path.type == "ReplacePrefixMatch":
            others = [m.path.type for m in rule.matches if m.path.type != PathType.PREFIX]
            if others:
                return f"ReplacePrefixMatch needs matches by prefix, not {others[0]}"
    return ""


def _rewrite(filters: list[HTTPRouteFilter]) -> UrlRewrite | None:
    for one in filters:
        if one.url_rewrite is not None:
            path = one.url_rewrite.path
            return UrlRewrite(
                hostname=one.url_rewrite.hostname,
                full_path=path.replace_full_path if path else None,
                prefix=path.replace_prefix_match if path else None,
            )
    return None
