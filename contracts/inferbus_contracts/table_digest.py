"""The digest of a routing table, over its parts.

Whoever publishes a table and whoever follows it must come to the same digest, and one part changes
while thousands don't. Invariant: the digest is `digest` of the sorted list of `[key, digest]`, as
`RoutePublished` documents; what is sorted and joined here are the encodings of those pairs, which
each side keeps beside its parts.
"""

from collections.abc import Iterable

from inferbus_contracts.canonical import canonical_json, digest_bytes
from inferbus_contracts.keys import ObjectKey


def part_pair(key: ObjectKey, part_digest: str) -> bytes:
    """What one part contributes: the canonical JSON of `[key, digest]`.

    Pairs sort as their keys do, because no character of a key sorts before the quotation mark that
    ends it.
    """
    return canonical_json([str(key), part_digest])


def table_digest(pairs: Iterable[bytes]) -> str:
    """The digest of the table whose parts contribute these `part_pair`s, in any order."""
    return digest_bytes(b"[" + b",".join(sorted(pairs)) + b"]")
