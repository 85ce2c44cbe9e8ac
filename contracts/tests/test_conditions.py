"""Stamping conditions: what changes when, and what stays."""

from inferbus_contracts.conditions import condition, stamp

LATER_MS = 1_700_000_000_000


def test_a_time_changes_with_the_status_alone() -> None:
    first = stamp([], [condition("Ready", False, "Starting", "1 of 2")], 1, 0)
    other_words = stamp(first, [condition("Ready", False, "Starting", "0 of 2")], 2, LATER_MS)
    assert other_words[0]["lastTransitionTime"] == "1970-01-01T00:00:00Z"
    assert other_words[0]["message"] == "0 of 2"
    assert other_words[0]["observedGeneration"] == 2
    other_status = stamp(first, [condition("Ready", True, "Started")], 2, LATER_MS)
    assert other_status[0]["lastTransitionTime"] == "2023-11-14T22:13:20Z"


def test_conditions_of_others_are_kept() -> None:
    others = [{"type": "Accepted", "status": "True", "reason": "Admitted"}]
    stamped = stamp(others, [condition("Available", True, "r")], 1, 0)
    assert others[0] in stamped
    assert [one["type"] for one in stamped] == ["Accepted", "Available"]


def test_an_occasional_condition_turns_false_when_nobody_asserts_it() -> None:
    doubt = condition("NameTaken", True, "ForeignPod", "pod x")
    first = stamp([], [doubt], 1, 0, occasional=("NameTaken", "NeverSeen"))
    assert [one["status"] for one in first] == ["True"]
    then = stamp(first, [], 1, LATER_MS, occasional=("NameTaken", "NeverSeen"))
    assert [(one["type"], one["status"], one["reason"]) for one in then] == [
        ("NameTaken", "False", "Resolved")
    ]
