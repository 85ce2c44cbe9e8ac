import pytest
from pydantic import ValidationError

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError, shorten


def test_a_problem_reads_as_place_fault_value_remedy_and_code() -> None:
    problem = Problem(
        code=ErrorCode.WRONG_TYPE,
        message="should be an integer",
        file="a.yaml:3",
        object="ModelServing/ns/chat",
        field="spec.replicas",
        value="one",
        remedy="write a number",
    )
    assert str(problem) == (
        "a.yaml:3: ModelServing/ns/chat: spec.replicas: should be an integer (value: one); "
        "write a number [IB-1006]"
    )
    assert str(Problem(code=ErrorCode.TOO_LARGE, message="too large")) == "too large [IB-1010]"


def test_problems_are_told_line_by_line_and_never_none() -> None:
    two = [Problem(code=ErrorCode.NOT_FOUND, message=text) for text in ("a", "b")]
    assert str(ProblemsError(*two)) == "a [IB-2003]\nb [IB-2003]"
    with pytest.raises(ValueError, match="at least one"):
        ProblemsError()


def test_codes_are_unique() -> None:
    assert len({code.value for code in ErrorCode}) == len(ErrorCode)


def test_long_values_end_in_an_ellipsis() -> None:
    assert shorten("x" * 200) == "x" * 200
    assert shorten("x" * 201) == "x" * 199 + "…"
    assert shorten({"a": 1}) == "{'a': 1}"


def test_a_code_of_a_newer_release_is_kept_and_anything_else_refused() -> None:
    told = Problem.model_validate_json('{"code":"IB-9999","message":"from tomorrow"}')
    assert str(told) == "from tomorrow [IB-9999]"
    assert Problem.model_validate_json(told.to_json()) == told
    with pytest.raises(ValidationError):
        Problem.model_validate({"code": "boom", "message": "no code at all"})
