"""Every row of the tables of rules, broken; and what comes close to breaking one and doesn't."""

import pytest

from contracts.tests.rule_cases import autoscaling, booster, llmaz, metadata, routing, serving
from inferbus_contracts.admission import admit
from inferbus_contracts.admission.rule import Severity
from inferbus_contracts.admission.rules import rules_for
from inferbus_contracts.resources.kinds import KINDS

CASES = (metadata, autoscaling, serving, booster, routing, llmaz)
BROKEN = [case for module in CASES for case in module.BROKEN]
FINE = [*((token, {}) for token in KINDS), *(case for module in CASES for case in module.FINE)]
ROWS = {rule.id: rule for token in KINDS for rule in rules_for(token)}


@pytest.mark.parametrize(("rule", "token", "changes", "field"), BROKEN)
def test_a_broken_rule_is_told_with_its_place(
    admitted, problems, rule: str, token: str, changes: dict, field: str
) -> None:
    refused = problems(token, changes)
    told = refused if ROWS[rule].severity is Severity.ERROR else admitted(token, changes).warnings
    assert field in [problem.field for problem in told]
    assert all(problem.message and problem.remedy for problem in told)
    assert bool(refused) is (ROWS[rule].severity is Severity.ERROR)


@pytest.mark.parametrize(("token", "changes"), FINE)
def test_what_breaks_no_rule_is_admitted_without_a_word(
    admitted, token: str, changes: dict
) -> None:
    once = admitted(token, changes)
    assert once.warnings == ()
    assert admit(once.object).object == once.object


def test_every_rule_that_is_checked_is_broken_above() -> None:
    checked = {rule.id for rule in ROWS.values() if rule.check is not None}
    assert {case[0] for case in BROKEN} == checked


def test_a_rule_has_a_check_unless_it_is_accepted() -> None:
    for rule in ROWS.values():
        assert (rule.check is None) is (rule.severity is Severity.ACCEPTED)


@pytest.mark.parametrize("token", list(KINDS))
def test_ids_are_unique_and_decisions_are_written_down(token: str) -> None:
    rules = rules_for(token)
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.section and rule.decision for rule in rules)
