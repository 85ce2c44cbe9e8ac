"""Redis as a `BlockStore`. Invariant: whatever the client library raises is a `StoreError`."""

from collections.abc import Sequence

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from inferbus_router.kv_learning import TIMEOUT_SECONDS, StoreError

_CONNECT_SECONDS = 2.0


class RedisBlockStore:
    """One server."""

    def __init__(self, host: str, port: int, password: str) -> None:
        self._client = Redis(
            host=host,
            port=port,
            password=password or None,
            decode_responses=True,
            socket_connect_timeout=_CONNECT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )

    async def owners(self, keys: Sequence[str]) -> list[dict[str, str]]:
        """See `BlockStore`."""
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.hgetall(key)
                answers = await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreError(str(error)) from None
        return [answer if isinstance(answer, dict) else {} for answer in answers]

    async def close(self) -> None:
        """See `BlockStore`."""
        await self._client.aclose()
