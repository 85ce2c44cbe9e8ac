"""Defects of Gateways and HTTPRoutes, each put back by one line."""

from tests.support.mutants import Mutant

MUTANTS = (
    Mutant(
        "RT_28",
        "http_routes",
        'path = prefix + b"/" + rest if rest or not prefix else prefix',
        "path = prefix + rest",
    ),
    Mutant(
        "RT_28",
        "http_routes",
        "if self.method and self.method != request.method:",
        "if self.method or self.headers or self.query:",
    ),
    Mutant("RT_30", "gateways", '        and parent.section in ("", listener.name)\n', ""),
    Mutant(
        "RT_31",
        "record",
        "    error_type: ErrorType | None = None",
        "    error_type: ErrorType | None = ErrorType.ROUTE_NOT_FOUND",
    ),
    Mutant("RT_30", "gateways", "        and parent.port in (None, listener.port)\n", ""),
)
