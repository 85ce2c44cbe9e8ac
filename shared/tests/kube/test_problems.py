import pytest

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.kube.problems import not_the_api_server, refused
from shared.tests.kube.scripted import status

CONFLICT_MESSAGE = 'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.x'


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", ErrorCode.KUBE_INVALID),
        (401, "Unauthorized", ErrorCode.KUBE_REFUSED),
        (403, "Forbidden", ErrorCode.KUBE_REFUSED),
        (404, "NotFound", ErrorCode.NOT_FOUND),
        (409, "Conflict", ErrorCode.CONFLICT),
        (409, "AlreadyExists", ErrorCode.ALREADY_EXISTS),
        (415, "UnsupportedMediaType", ErrorCode.KUBE_INVALID),
        (418, "Teapot", ErrorCode.KUBE_INVALID),
        (422, "Invalid", ErrorCode.KUBE_INVALID),
        (429, "TooManyRequests", ErrorCode.KUBE_THROTTLED),
        (500, "InternalError", ErrorCode.KUBE_FAILED),
        (503, "ServiceUnavailable", ErrorCode.KUBE_UNREACHABLE),
        (504, "Timeout", ErrorCode.KUBE_UNREACHABLE),
    ],
)
def test_a_refusal_has_a_code_the_servers_words_and_a_remedy(
    code: int, reason: str, expected: ErrorCode
) -> None:
    error = refused(code, status(code, reason, "quota of pods used up"), "Pod/a/b")
    (problem,) = error.problems
    assert (error.status, problem.code, problem.object) == (code, expected, "Pod/a/b")
    assert "quota of pods used up" in problem.message
    assert problem.remedy


def test_a_conflict_over_fields_names_each_field_and_its_manager() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl"',
            "field": ".spec.x",
        },
        {"reason": "FieldManagerConflict", "message": 'conflict with "kthena"', "field": ".spec.y"},
    ]
    answer = status(409, "Conflict", CONFLICT_MESSAGE, details={"causes": causes})
    error = refused(409, answer, "Pod/a/b")
    assert [problem.field for problem in error.problems] == ["spec.x", "spec.y"]
    assert "kubectl" in error.problems[0].message
    assert "kthena" in error.problems[1].message
    assert error.code is ErrorCode.FIELD_OWNED_BY_OTHER


def test_an_invalid_object_names_each_field() -> None:
    causes = [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
        {"reason": "FieldValueInvalid", "message": 'Invalid value: "x"', "field": "spec.b[0]"},
    ]
    error = refused(422, status(422, "Invalid", "2 errors", details={"causes": causes}), "")
    told = [(problem.field, problem.message) for problem in error.problems]
    assert [field for field, _ in told] == ["spec.a", "spec.b[0]"]
    assert "Required value" in told[0][1]


@pytest.mark.parametrize("details", [None, [], "x", {"causes": None}, {"causes": ["x", 1]}])
def test_odd_details_lose_nothing_of_the_message(details: object) -> None:
    error = refused(422, status(422, "Invalid", "no such field", details=details), "")
    assert "no such field" in error.problems[0].message


def test_a_proxys_page_is_shown_short() -> None:
    error = not_the_api_server(502, "text/html", b"<html>" + b"x" * 5000)
    (problem,) = error.problems
    assert "502" in problem.message
    assert "text/html" in problem.message
    assert str(problem.value).startswith("<html>")
    assert len(str(problem.value)) <= 200
    assert error.status == 0
