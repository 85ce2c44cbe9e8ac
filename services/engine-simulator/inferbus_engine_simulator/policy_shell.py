"""What a shell would run: the simple commands inside `sh -c "…"`.

Manifests wrap engines in shells to install something first, or to wait for a peer. The script is
cut into simple commands at `&&`, `||`, `;`, `|`, `&` and newlines; quotes are honoured, variables
are expanded from the given environment except inside single quotes. Loops and functions are not
interpreted: their words become part of the commands, which is enough to find the engine in them.

Invariant: nothing is executed, and the words keep their order.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_SEPARATORS = ";&|\n"
_WRAPPERS = frozenset(
    {"exec", "env", "nohup", "time", "tini", "dumb-init", "do", "then", "else", "{", "(", "!", "--"}
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_VARIABLE = re.compile(
    r"'[^']*'"
    r"|\$\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^}]*))?\}"
    r"|\$(?P<plain>[A-Za-z_]\w*)"
)


def simple_commands(
    argv: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[list[str]], bool]:
    """The simple commands of a command line, and whether a shell was around them.

    Raises `ProblemsError` when a script's quotes don't match.
    """
    words = strip_wrappers(argv)
    script = _script(words)
    if script is None:
        return [words], False
    commands = []
    for command in _split(_expand(script, environment)):
        stripped = strip_wrappers(command)
        inner, shell = simple_commands(stripped, environment) if stripped else ([], False)
        commands += inner if shell else [stripped]
    return commands, True


def strip_wrappers(words: Sequence[str]) -> list[str]:
    """Without what stands before a program: assignments, `exec`, `env`, `tini --` and the like."""
    index = 0
    while index < len(words) and (
        PurePosixPath(words[index]).name in _WRAPPERS or _ASSIGNMENT.fullmatch(words[index])
    ):
        index += 1
    return list(words[index:])


def assignments(argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with what `NAME=value` words before a program, or `export`, add to it."""
    found = dict(environment)
    script = _script(strip_wrappers(argv))
    commands = [list(argv)] if script is None else _split(_expand(script, environment))
    for command in commands:
        for word in command[1:] if command[:1] == ["export"] else command:
            if _ASSIGNMENT.fullmatch(word):
                name, _, value = word.partition("=")
                found[name] = value
            elif PurePosixPath(word).name not in _WRAPPERS:
                break
    return found


def _script(words: Sequence[str]) -> str | None:
    if not words or PurePosixPath(words[0]).name not in _SHELLS:
        return None
    for index, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-[a-z]*c", word):
            return words[index + 1] if index + 1 < len(words) else ""
        if not word.startswith("-") and word != "pipefail":
            return None
    return None


def _expand(script: str, environment: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match["braced"] or match["plain"]
        if name is None:
            return match[0]
        return environment.get(name) or match["default"] or ""

    return _VARIABLE.sub(value, script)


def _split(script: str) -> list[list[str]]:
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=_SEPARATORS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise ProblemsError(
            Problem(
                code=ErrorCode.BAD_ARGUMENT,
                message=f"the shell script can't be read: {error}",
                field="command",
                value=script,
                remedy="close every quote of the script",
            )
        ) from None
    commands: list[list[str]] = [[]]
    for word in words:
        if word and not word.strip(_SEPARATORS):
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command and not command[0].startswith("#")]
