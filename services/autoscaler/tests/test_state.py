"""Stored state: it comes back as it was, and says so when it can't."""

from typing import Any

import pytest

from inferbus_autoscaler.state import SCHEMA, TargetState
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import WEBHOOK_DEFAULTS, Fleet, policy


@pytest.mark.parametrize("compat", [None, *Compat])
def test_a_state_survives_the_log(compat: Compat | None) -> None:
    fleet = Fleet(3, policy(behaviour=WEBHOOK_DEFAULTS, compat=compat))
    for load in [50, 500, None, 20, 700, 10]:
        fleet.run([load])
        again = TargetState.from_dict(fleet.state.to_dict())
        assert again == fleet.state
        assert again.digest() == fleet.state.digest()


def test_digests_tell_states_apart() -> None:
    assert TargetState().digest() != TargetState(changed_ms=1).digest()


def test_a_state_of_the_layout_before_is_read() -> None:
    older: dict[str, Any] = {"schema": SCHEMA - 1, "owner": ["policy", "target"], "gone": 1}
    assert TargetState.from_dict(older) == TargetState(owner=("policy", "target"))


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 2, None])
def test_any_other_layout_is_refused(schema: int | None) -> None:
    with pytest.raises(ProblemsError, match="layout"):
        TargetState.from_dict({"schema": schema})


def test_an_empty_state_is_small() -> None:
    assert canonical_json(TargetState().to_dict()) == b'{"schema":1}'
