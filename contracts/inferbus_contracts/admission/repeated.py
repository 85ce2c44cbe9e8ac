"""Names that should be unique in their list: one finding for each that came before."""

from collections.abc import Iterable, Iterator

from inferbus_contracts.admission.rule import Finding
from inferbus_contracts.errors import ErrorCode


def repeated_names(named: Iterable[tuple[str, str]], what: str) -> Iterator[Finding]:
    """A finding for each (path, name) whose name an earlier one has; `what` names the items."""
    seen: set[str] = set()
    for field, name in named:
        if name in seen:
            yield Finding(
                code=ErrorCode.DUPLICATE_NAME,
                field=field,
                message=f"another {what} has the same name",
                value=name,
                remedy=f"give each {what} a name of its own",
            )
        seen.add(name)
