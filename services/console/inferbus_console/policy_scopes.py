"""What an order is about: everything, a namespace, a policy, or one target."""

from collections.abc import Callable, Collection

from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.orders import NAMESPACE_SCOPE, PLATFORM, namespace_scope


def scope_of(
    word: str, target: Callable[[str], ObjectKey], namespaces: Collection[str]
) -> ObjectKey:
    """The scope that `word` names: `Platform/_/all`, `Namespace/_/<name>`, or a target or policy.

    `target` finds one of the latter two by its name and raises `ProblemsError` when there is none.
    A namespace without objects is refused: a freeze with a spelling mistake would freeze nothing.
    """
    if word == str(PLATFORM):
        return PLATFORM
    kind, _, name = word.partition("/_/")
    if kind != NAMESPACE_SCOPE:
        return target(word)
    if name not in namespaces:
        raise ProblemsError(
            Problem(
                code=ErrorCode.NOT_FOUND,
                message="nothing is in this namespace",
                field="scope",
                value=word,
                remedy=f"namespaces with objects: {', '.join(sorted(namespaces)) or 'none'}",
            )
        )
    return namespace_scope(name)
