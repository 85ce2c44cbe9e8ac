"""Subjects with wildcards, compared token by token as the server does."""


def overlap(one: str, other: str) -> bool:
    """Whether some subject fits both."""
    return _meet(one.split("."), other.split("."))


def covers(wide: str, narrow: str) -> bool:
    """Whether every subject that fits `narrow` fits `wide`."""
    wide_tokens, narrow_tokens = wide.split("."), narrow.split(".")
    for position, token in enumerate(wide_tokens):
        if token == ">":
            return len(narrow_tokens) > position
        if position >= len(narrow_tokens) or narrow_tokens[position] == ">":
            return False
        if token not in ("*", narrow_tokens[position]):
            return False
    return len(wide_tokens) == len(narrow_tokens)


def _meet(one: list[str], other: list[str]) -> bool:
    if not one or not other:
        return not one and not other
    if ">" in (one[0], other[0]):
        return True
    if "*" not in (one[0], other[0]) and one[0] != other[0]:
        return False
    return _meet(one[1:], other[1:])
