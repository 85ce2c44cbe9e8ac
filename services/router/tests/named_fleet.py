"""Routers with a configuration file, and engines behind them."""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.router.tests.builders import route, route_key, server, server_key
from services.router.tests.client import Client
from services.router.tests.engine import Engine

if TYPE_CHECKING:
    from services.router.tests.conftest import RouterUnderTest

QUICK = 0.02


def plugins(*scores: str, filters: tuple[str, ...] = (), **arguments: dict[str, Any]) -> str:
    """A configuration file; each score has weight 1."""
    enabled = [{"name": name, "weight": 1} for name in scores]
    config = [{"name": name.replace("_", "-"), "args": args} for name, args in arguments.items()]
    sections = {"Filter": {"enabled": list(filters)}, "Score": {"enabled": enabled}}
    return json.dumps({"scheduler": {"pluginConfig": config, "plugins": sections}})


class Fleet:
    """A router with a configuration file, and engines behind it."""

    def __init__(self, router: "RouterUnderTest", path: Path, engines: list[Engine]) -> None:
        self.router = router
        self.path = path
        self.engines = engines

    async def client(self) -> Client:
        return await self.router.client()

    def serve(self, *engines: Engine, adapters: Sequence[str] = (), **fields: Any) -> None:
        """Route to these engines; `fields` are the model server's."""
        entries = [engine.entry() for engine in engines]
        self.router.apply(
            {
                route_key("r"): route(adapters=list(adapters)),
                server_key("ms"): server(*entries, **fields),
            }
        )

    @property
    def served(self) -> list[int]:
        """Requests for completions at each engine."""
        return [sum(turn.method == "POST" for turn in each.turns) for each in self.engines]

    async def metric(self, name: str) -> float:
        return (await self.router.metrics())[name]


StartFleet = Callable[..., Awaitable[Fleet]]
