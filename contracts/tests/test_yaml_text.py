"""YAML text: read back as it was written, by anybody's parser."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.manifests.yaml_text import yaml_text

TRICKY = st.sampled_from(
    [
        *("yes", "No", "on", "null", "~", "y", "N", "True", "0x1f", "1e3", "1.0", ".5", "", " a"),
        *("a: b", "a #b", "- a", "a ", "'", '"', "a\nb", "\u2028", "=", "!a", "&a", "*a", "None"),
        *("2026-01-31", "12:30:45", "?", "|", ">", "%", "@", "`", "{a}", "[a]", "a:", "<<"),
    ]
)
TEXT = TRICKY | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co")))
SCALARS = TEXT | st.booleans() | st.none() | st.integers(-(2**53), 2**53)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(bool), inner, max_size=3)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(TEXT.filter(bool), VALUES, min_size=1, max_size=4)


@given(st.lists(DOCUMENTS, min_size=1, max_size=3))
def test_documents_are_read_back_unchanged(documents: list) -> None:
    assert list(yaml.safe_load_all(yaml_text(documents, "A comment."))) == documents


def test_people_can_read_it() -> None:
    document = {"a": {"b": [{"c": 1, "d": [True, "x: y"]}, []]}, "e": "plain text, for once"}
    assert yaml_text([document], "Why.").decode() == (
        "# Why.\na:\n  b:\n    - c: 1\n      d:\n        - true\n"
        '        - "x: y"\n    - []\ne: plain text, for once\n'
    )
