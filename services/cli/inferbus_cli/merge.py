"""Several ordered streams of messages as one, in order of time."""

import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

ItemT = TypeVar("ItemT")


async def merged(
    sources: Sequence[AsyncIterator[ItemT]], order: Callable[[ItemT], Any]
) -> AsyncIterator[ItemT]:
    """The items of all sources by `order`; each source keeps its own order, and ties go by place.

    At most one item of each source is held.
    """
    heads: list[tuple[Any, int, ItemT]] = []

    async def pull(place: int) -> None:
        try:
            item = await anext(sources[place])
        except StopAsyncIteration:
            return
        heapq.heappush(heads, (order(item), place, item))

    for place in range(len(sources)):
        await pull(place)
    while heads:
        _, place, item = heapq.heappop(heads)
        yield item
        await pull(place)
