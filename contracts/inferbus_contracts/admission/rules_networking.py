"""The tables of rules of ModelRoute and ModelServer (routing spec 1.1 and 1.2).

What only newer versions refuse is a warning; a rule that can't be used makes that rule inactive and
leaves the rest of the route in force (ruling 4 of precedence).
"""

import re
import warnings
from collections.abc import Iterator, Mapping

from inferbus_contracts.admission.paths import child
from inferbus_contracts.admission.rule import Finding, Rule, accepted, error, warning
from inferbus_contracts.admission.rules_disaggregation import DISAGGREGATION_RULES
from inferbus_contracts.admission.rules_metadata import LABEL_VALUE_REMEDY
from inferbus_contracts.errors import ErrorCode
from inferbus_contracts.resources.names import is_label_key, is_label_value
from inferbus_contracts.resources.networking import ModelRoute, ModelServer, RouteRule, StringMatch


def _rules(resource: ModelRoute) -> Iterator[tuple[str, RouteRule]]:
    for index, rule in enumerate(resource.spec.rules):
        yield f"spec.rules[{index}]", rule


def _matches(resource: ModelRoute) -> Iterator[tuple[str, StringMatch]]:
    for path, rule in _rules(resource):
        match = rule.model_match
        if match is None:
            continue
        for name, header in match.headers.items():
            yield child(f"{path}.modelMatch.headers", name), header
        if match.uri is not None:
            yield f"{path}.modelMatch.uri", match.uri


def pattern_fault(pattern: str) -> str | None:
    """Why a pattern doesn't compile; None when it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as wrong:
        return str(wrong)
    return None


def answers_for_something(resource: ModelRoute) -> Iterator[Finding]:
    """A route is found by a model's or an adapter's name."""
    spec = resource.spec
    if not spec.model_name and not spec.lora_adapters:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field="spec.modelName",
            message="the route answers for no model",
            remedy="add modelName or loraAdapters",
        )


def adapters_named(resource: ModelRoute) -> Iterator[Finding]:
    """An empty name can't be asked for."""
    for index, name in enumerate(resource.spec.lora_adapters):
        if not name:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=f"spec.loraAdapters[{index}]",
                message="an adapter needs a name",
                value=name,
                remedy="write the adapter's name, or remove the item",
            )


def targets_named(resource: ModelRoute) -> Iterator[Finding]:
    """A target is a ModelServer or an external provider."""
    for path, rule in _rules(resource):
        for index, target in enumerate(rule.target_models):
            server, provider = target.model_server_name, target.external_model_provider_name
            if bool(server) == bool(provider):
                yield Finding(
                    code=ErrorCode.RULE_BROKEN if server else ErrorCode.MISSING_FIELD,
                    field=f"{path}.targetModels[{index}].modelServerName",
                    message="should have exactly one of modelServerName and "
                    "externalModelProviderName",
                    value=server or None,
                    remedy="name the ModelServer that the requests go to",
                )


def adapters_stay_inside(resource: ModelRoute) -> Iterator[Finding]:
    """Adapters are loaded into engines of the fleet."""
    for path, rule in _rules(resource):
        for index, target in enumerate(rule.target_models):
            if resource.spec.lora_adapters and target.external_model_provider_name:
                yield Finding(
                    field=f"{path}.targetModels[{index}].externalModelProviderName",
                    message="lora routes must target modelServerName",
                    value=target.external_model_provider_name,
                    remedy="name a ModelServer, or remove loraAdapters",
                )


def rules_have_targets(resource: ModelRoute) -> Iterator[Finding]:
    """A rule without targets matches and leads nowhere."""
    for path, rule in _rules(resource):
        if not rule.target_models:
            yield Finding(
                field=f"{path}.targetModels",
                message="is empty, so the rule is inactive",
                remedy="add at least one target",
            )


def weights_add_up(resource: ModelRoute) -> Iterator[Finding]:
    """Weights that sum to 0 share out nothing."""
    for path, rule in _rules(resource):
        if rule.target_models and not sum(target.weight for target in rule.target_models):
            yield Finding(
                field=f"{path}.targetModels",
                message="the weights sum to 0, so the rule is inactive",
                remedy="give at least one target a weight above 0",
            )


def patterns_compile(resource: ModelRoute) -> Iterator[Finding]:
    """A pattern that doesn't compile matches nothing."""
    for field, match in _matches(resource):
        fault = pattern_fault(match.regex) if match.regex is not None else None
        if fault is not None:
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=f"{field}.regex",
                message=f"doesn't compile ({fault}), so the rule is inactive",
                value=match.regex,
                remedy="correct the pattern (RE2 syntax)",
            )


def one_way_to_match(resource: ModelRoute) -> Iterator[Finding]:
    """Only one of exact, prefix and regex counts."""
    for field, match in _matches(resource):
        given = [name for name in ("exact", "prefix", "regex") if getattr(match, name) is not None]
        if len(given) > 1:
            yield Finding(
                field=field,
                message=f"only {given[0]} counts beside {', '.join(given[1:])}",
                remedy="keep one of exact, prefix and regex",
            )


def has_rules(resource: ModelRoute) -> Iterator[Finding]:
    """A route without rules answers nothing."""
    if not resource.spec.rules:
        yield Finding(
            field="spec.rules",
            message="is empty, so the route answers nothing",
            remedy="add a rule with a target",
        )


def limits_something(resource: ModelRoute) -> Iterator[Finding]:
    """A rate limit without a number limits nothing."""
    limit = resource.spec.rate_limit
    if limit and limit.input_tokens_per_unit is None and limit.output_tokens_per_unit is None:
        yield Finding(
            field="spec.rateLimit",
            message="has neither inputTokensPerUnit nor outputTokensPerUnit, and limits nothing",
            remedy="add one of them, or remove rateLimit",
        )


def selects_something(resource: ModelServer) -> Iterator[Finding]:
    """Without labels every pod of the namespace is selected."""
    if not resource.spec.workload_selector.match_labels:
        yield Finding(
            field="spec.workloadSelector.matchLabels",
            message="is empty, which selects every pod of the namespace",
            remedy="add the labels of the pods that serve the model",
        )


def has_port(resource: ModelServer) -> Iterator[Finding]:
    """Requests go to a port."""
    if resource.spec.workload_port is None:
        yield Finding(
            code=ErrorCode.MISSING_FIELD,
            field="spec.workloadPort",
            message="no port is given, and v0.1.0 sends nothing without one",
            remedy="add workloadPort with the port the pods serve on",
        )


def groups_can_be_told_apart(resource: ModelServer) -> Iterator[Finding]:
    """A group's key and labels are what prefill and decode pods are paired by."""
    group = resource.spec.workload_selector.pd_group
    if group is None:
        return
    parts = {
        "groupKey": group.group_key,
        "prefillLabels": group.prefill_labels,
        "decodeLabels": group.decode_labels,
    }
    for name, value in parts.items():
        if not value:
            yield Finding(
                field=f"spec.workloadSelector.pdGroup.{name}",
                message="is empty, so prefill and decode pods can't be paired",
                remedy=f"set {name}",
            )


def labels_can_match(resource: ModelServer) -> Iterator[Finding]:
    """A label that no pod can have selects none."""
    selector = resource.spec.workload_selector
    path = "spec.workloadSelector"
    yield from _labels(selector.match_labels, f"{path}.matchLabels")
    if selector.pd_group is not None:
        yield from _labels(selector.pd_group.prefill_labels, f"{path}.pdGroup.prefillLabels")
        yield from _labels(selector.pd_group.decode_labels, f"{path}.pdGroup.decodeLabels")


def _labels(labels: Mapping[str, str], path: str) -> Iterator[Finding]:
    for key, value in labels.items():
        if not is_label_key(key) or not is_label_value(value):
            yield Finding(
                code=ErrorCode.VALUE_OUT_OF_RANGE,
                field=child(path, key),
                message="no pod can have this label",
                value=value,
                remedy=LABEL_VALUE_REMEDY,
            )


ROUTE_RULES: tuple[Rule, ...] = (
    error("RT-1", "routing 1.1", "v0.1.0's schema refuses it", answers_for_something),
    error("RT-2", "routing 1.1, 8.5 (102)", "v0.1.0 refuses it too", adapters_named),
    error("RT-3", "routing 1.1", "v0.1.0 requires the one, and both are ambiguous", targets_named),
    error("RT-4", "routing 1.1, 8.5 (101)", "nobody outside has the adapter", adapters_stay_inside),
    warning("RT-5", "routing 1.1; ruling 4", "v0.1.0's schema accepts it", rules_have_targets),
    warning("RT-6", "routing 1.1; ruling 4", "that rule alone is inactive", weights_add_up),
    warning("RT-7", "routing 1.1; ruling 4", "that rule alone is inactive", patterns_compile),
    warning("RT-8", "routing 1.1", "documented, never enforced", one_way_to_match),
    warning("RT-9", "routing 1.1", "v0.1.0's schema accepts it", has_rules),
    warning("RT-10", "routing 1.1", "v0.1.0's schema accepts it", limits_something),
    accepted("RT-11", "routing 1.4", "whether targets exist, and who else answers, is a condition"),
)

SERVER_RULES: tuple[Rule, ...] = (
    warning("RT-20", "routing 1.2; ruling 4", "v0.1.0 accepts it", selects_something),
    warning("RT-21", "routing 1.2", "v0.1.0's schema accepts it", has_port),
    warning(
        "RT-22", "routing 1.2, 8.5 (103); ruling 4", "v0.1.0 accepts it", groups_can_be_told_apart
    ),
    warning("RT-23", "routing 1.2; ruling 4", "v0.1.0 accepts it", labels_can_match),
    *DISAGGREGATION_RULES,
)
