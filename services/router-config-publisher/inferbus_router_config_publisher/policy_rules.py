"""The rules of a ModelRoute as routers need them.

Invariant: a rule that can't be used is left out and named; it takes nothing else of the route with
it (ruling 4 of precedence). Patterns are compiled by Python's `re`, as the routers do: lookarounds
and back-references, which RE2 refuses, are accepted here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from inferbus_contracts.admission.rules_networking import pattern_fault
from inferbus_contracts.events.route import (
    MatchRule,
    RuleEntry,
    StringRule,
    TargetShare,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.names import is_dns1123_subdomain
from inferbus_contracts.resources.networking import (
    ModelMatch,
    ModelRouteSpec,
    RouteRule,
    StringMatch,
    TargetModel,
)


class ActiveRule(NamedTuple):
    """A rule that routers get."""

    name: str
    """As people know it."""
    entry: RuleEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """What the rules of a route come to."""

    active: list[ActiveRule] = field(default_factory=list)
    inactive: list[str] = field(default_factory=list)
    """The names of the other rules, in order."""
    servers: list[ObjectKey] = field(default_factory=list)
    """Every ModelServer and ExternalModelProvider that is named, each once, in the order of first
    mention.
    """
    unusable: list[str] = field(default_factory=list)
    """Targets that lead nowhere, with the reason."""
    doubts: list[str] = field(default_factory=list)


def read_rules(spec: ModelRouteSpec, namespace: str) -> ReadRules:
    """Split the rules into those that routers get and what is to be said about the others."""
    read = ReadRules()
    for index, rule in enumerate(spec.rules):
        name = rule_name(index, rule.name)
        targets = list(_targets(rule, name, namespace, read))
        if not _compiles(rule.model_match) or not any(target.weight > 0 for target in targets):
            read.inactive.append(name)
            continue
        match = _match(rule.model_match, read)
        entry = RuleEntry(name=rule.name or "", match=match, targets=targets)
        read.active.append(ActiveRule(name, entry))
    return read


def rule_name(index: int, name: str | None) -> str:
    """What people call a rule: `rule "name"`, or by its place."""
    return f'rule "{name}"' if name else f"rules[{index}]"


def _targets(rule: RouteRule, name: str, namespace: str, read: ReadRules) -> Iterator[TargetShare]:
    for target in rule.target_models:
        fault = _target_fault(target)
        if fault:
            read.unusable.append(f"{name}: {fault}")
            continue
        provider = target.external_model_provider_name
        kind = kinds.EXTERNAL_MODEL_PROVIDER if provider else kinds.MODEL_SERVER
        key = ObjectKey(kind, namespace, provider or target.model_server_name or "")
        if key not in read.servers:
            read.servers.append(key)
        yield TargetShare(server=str(key), weight=target.weight)


def _target_fault(target: TargetModel) -> str:
    """Why a target leads nowhere; empty when it may lead somewhere."""
    server, provider = target.model_server_name, target.external_model_provider_name
    if server and provider:
        return f"ModelServer {server} and ExternalModelProvider {provider} exclude each other"
    if not is_dns1123_subdomain(server or provider or ""):
        kind = kinds.EXTERNAL_MODEL_PROVIDER if provider else kinds.MODEL_SERVER
        return f"{server or provider or ''!r} can't be the name of a {kind}"
    return ""


def _compiles(match: ModelMatch | None) -> bool:
    if match is None:
        return True
    texts = [*match.headers.values(), *([match.uri] if match.uri else [])]
    return all(text.regex is None or pattern_fault(text.regex) is None for text in texts)


def _match(match: ModelMatch | None, read: ReadRules) -> MatchRule | None:
    if match is None:
        return None
    headers: dict[str, StringRule] = {}
    for name, text in match.headers.items():
        if name.lower() in headers:
            read.doubts.append(f"header {name} is given twice, the last one counts")
        headers[name.lower()] = _string_rule(text)
    return MatchRule(
        headers=headers,
        uri=_string_rule(match.uri) if match.uri else None,
        model=match.body.model if match.body else None,
    )


def _string_rule(text: StringMatch) -> StringRule:
    """Exact before prefix before regex; with none of them any text will do (routing spec 1.1)."""
    if text.exact is not None:
        return StringRule(exact=text.exact)
    if text.prefix is not None:
        return StringRule(prefix=text.prefix)
    return StringRule(regex=text.regex)
