"""What a reader of the bench sees."""

import json

from tests.bench.builders import figure, outcome
from tests.bench.figure import Outcome
from tests.bench.report import conclusion, json_of, text_of


def test_value_limit_and_verdict_stand_in_the_first_line() -> None:
    first = text_of(outcome(8.5)).splitlines()[0]
    assert first.split() == ["memory", "8.5", "MB", "limit", "10", "MB:", "holds"]


def test_a_missed_limit_is_loud() -> None:
    assert "DOES NOT HOLD" in text_of(outcome(12))


def test_the_limit_of_a_rate_is_told_as_the_least() -> None:
    rate = Outcome(attempts=[figure(8.5, more_is_better=True)])
    assert "at least 10 MB: DOES NOT HOLD" in text_of(rate)
    (told,) = json_of({}, [rate])["figures"]  # type: ignore[misc]
    assert told["moreIsBetter"] is True


def test_what_has_no_limit_says_so() -> None:
    assert "for information" in text_of(outcome(12, limit=None))


def test_configuration_and_every_attempt_are_shown() -> None:
    one = figure(12, configuration={"sample_interval_seconds": 5.0, "targets": 20})
    text = text_of(Outcome(attempts=[one, figure(11), one]))
    assert "attempts: 12, 11, 12" in text
    assert "sample interval seconds" not in text  # the best attempt had none
    assert "sample interval seconds 5.0; targets 20" in text_of(Outcome(attempts=[one]))


def test_no_line_is_wider_than_a_terminal() -> None:
    wide = figure(1, configuration={f"setting_{number}": number for number in range(60)})
    assert max(map(len, text_of(Outcome(attempts=[wide])).splitlines())) <= 100


def test_the_last_line_names_what_was_missed() -> None:
    assert conclusion([outcome(1), outcome(5, limit=None)]) == "every limit holds (1)"
    missed = conclusion([outcome(1), outcome(11, name="idle-cpu"), outcome(99, limit=None)])
    assert missed == "1 of 2 limits missed: idle-cpu"
    assert conclusion([outcome(5, limit=None)]) == "nothing of this has a limit"


def test_a_program_reads_the_same_as_a_person() -> None:
    document = json_of({"cores": 2}, [outcome(12, 11), outcome(3, limit=None, name="apply")])
    read = json.loads(json.dumps(document))
    assert read["machine"] == {"cores": 2}
    assert read["holds"] is False
    memory, apply = read["figures"]
    assert (memory["name"], memory["value"], memory["limit"], memory["holds"]) == (
        "memory",
        11,
        10,
        False,
    )
    assert memory["attempts"] == [12, 11]
    assert (apply["limit"], apply["holds"]) == (None, True)
