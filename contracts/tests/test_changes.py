import pytest

from inferbus_contracts.admission import check_change
from inferbus_contracts.errors import ErrorCode

GANG = "spec.template.gangPolicy"
ONE, TWO = {"minRoleReplicas": {"server": 1}}, {"minRoleReplicas": {"server": 0}}


FORBIDDEN = [
    ("ModelRoute", {}, {"spec.modelName": "other"}, "spec.modelName"),
    ("ModelRoute", {}, {"spec.modelName": ..., "spec.loraAdapters": ["a"]}, "spec.modelName"),
    ("ModelServing", {GANG: ONE}, {}, GANG),
    ("ModelServing", {GANG: ONE}, {GANG: TWO}, f"{GANG}.minRoleReplicas"),
]
"""(kind, before, after, field): a change that is refused, at this field."""

ALLOWED = [
    ("ModelRoute", {}, {"spec.rules": []}),
    ("ModelRoute", {"spec.modelName": ..., "spec.loraAdapters": ["a"]}, {}),
    ("ModelServing", {}, {GANG: ONE}),
    ("ModelServing", {GANG: ONE}, {GANG: {}}),
    ("ModelServing", {GANG: {}}, {GANG: ONE}),
    ("ModelServing", {GANG: ONE}, {GANG: ONE, "spec.replicas": 5}),
    ("ModelBooster", {}, {"spec.owner": "x"}),
]
"""(kind, before, after)."""


@pytest.mark.parametrize(("token", "before", "after", "field"), FORBIDDEN)
def test_what_may_not_change(admitted, token: str, before: dict, after: dict, field: str) -> None:
    (problem,) = check_change(admitted(token, before).resource, admitted(token, after).resource)
    assert (problem.code, problem.field) == (ErrorCode.IMMUTABLE_FIELD, field)


@pytest.mark.parametrize(("token", "before", "after"), ALLOWED)
def test_what_may_change(admitted, token: str, before: dict, after: dict) -> None:
    assert check_change(admitted(token, before).resource, admitted(token, after).resource) == []
