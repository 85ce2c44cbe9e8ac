"""Kubernetes' `$(VAR)` in commands, arguments and values of variables.

`$(NAME)` becomes the variable's value, or stays as it is when there is no such variable; `$$` is
one `$`, so that `$$(NAME)` is the text `$(NAME)`.
"""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`text` with every reference replaced that can be."""

    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        return variables.get(name, match[0])

    return _REFERENCE.sub(replacement, text)
