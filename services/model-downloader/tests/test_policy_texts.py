"""What people read: no secrets, progress that says what happens, a disk that is full."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_model_downloader.policy_progress import Meter, Progress, human_bytes, progress_line
from inferbus_model_downloader.policy_redaction import redacted, redacted_problem
from inferbus_model_downloader.policy_space import space_problem


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://h/x?X-Signature=abc&y=1 failed", "GET https://h/x?*** failed"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("token hf_abcdefghijkl!", "token hf_***!"),
        ("https://me:pw@h/x", "https://***@h/x"),
        ("nothing here: a@b, 5 ?", "nothing here: a@b, 5 ?"),
    ],
)
def test_texts_lose_what_looks_like_a_secret(text: str, shown: str) -> None:
    assert redacted(text) == shown


@given(st.text(), st.text("abcdefXYZ019", min_size=6), st.text())
def test_a_known_secret_never_comes_through(before: str, secret: str, after: str) -> None:
    assert secret not in redacted(before + secret + after, [secret, ""])


def test_problems_are_shown_without_secrets() -> None:
    problem = Problem(code=ErrorCode.MODEL_CORRUPT, message="with s3cr3t", value="s3cr3t")
    assert "s3cr3t" not in str(redacted_problem(problem, ["s3cr3t"]))


def test_the_rate_is_that_of_the_last_seconds() -> None:
    meter = Meter()
    assert meter.bytes_per_second(0, 0) == 0
    assert meter.bytes_per_second(1_000, 500) == 500
    for second in range(2, 9):
        rate = meter.bytes_per_second(second * 1_000, 500)
    assert rate == 0


def test_a_line_says_share_amount_rate_and_rest() -> None:
    progress = Progress()
    assert progress_line(progress, 0) == "asking the source"
    progress.start(4 << 20, 1 << 20)
    assert progress_line(progress, 1 << 20) == "25 %  1.0 MiB of 4.0 MiB  1.0 MiB/s  3 s left"
    progress.start(4 << 20, 1 << 20, waiting=True)
    assert "another process" in progress_line(progress, 0)
    progress.start(0, 0)
    assert progress_line(progress, 0).startswith("100 %")


def test_amounts_are_readable() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1536, 5 << 30, 3 << 50)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 GiB",
        "3072.0 TiB",
    ]


def test_a_download_fits_beside_the_reserve_or_is_a_full_disk() -> None:
    assert space_problem(60, 100, 40, "/c") is None
    problem = space_problem(61, 100, 40, "/c")
    assert problem is not None
    assert problem.code is ErrorCode.DISK_FULL
    assert problem.file == "/c"
    assert "61" in problem.message
