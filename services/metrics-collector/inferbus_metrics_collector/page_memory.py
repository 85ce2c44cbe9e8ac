"""How many bytes of pages are held at a time, however many pods send however much.

Invariant: a page of ordinary size is never refused for what other pods send; all that goes beyond
that size comes out of one room that all connections share.
"""

ORDINARY_PAGE_BYTES = 256 * 1024
"""What any page may hold; a page of vLLM has some 60 KB."""

SHARED_ROOM_BYTES = 32 * 1024 * 1024
"""What all pages together may hold beyond that."""

RECEIVE_BYTES = 256 * 1024
"""Read from a socket at once."""


class PageMemory:
    """The limits of one collector, and the buffer that all its connections receive into."""

    def __init__(self, most_page_bytes: int, shared_room_bytes: int = SHARED_ROOM_BYTES) -> None:
        """`most_page_bytes`: of one page."""
        self.most_page_bytes = most_page_bytes
        self.receive_buffer = memoryview(bytearray(RECEIVE_BYTES))
        """Whatever is received is taken out of it before anything else is."""
        self._shared_room_bytes = shared_room_bytes
        self._shared_bytes = 0

    def grow(self, held_bytes: int, wanted_bytes: int) -> str:
        """Let a page grow; why it may not, or nothing. A refused page holds what it held."""
        if wanted_bytes > self.most_page_bytes:
            return f"the page is larger than {self.most_page_bytes} bytes"
        more_bytes = _beyond_ordinary(wanted_bytes) - _beyond_ordinary(held_bytes)
        if self._shared_bytes + more_bytes > self._shared_room_bytes:
            return "too many large pages are being read at the same time"
        self._shared_bytes += more_bytes
        return ""

    def release(self, held_bytes: int) -> None:
        """A page of that size is held no more."""
        self._shared_bytes -= _beyond_ordinary(held_bytes)


def _beyond_ordinary(size_bytes: int) -> int:
    return max(size_bytes - ORDINARY_PAGE_BYTES, 0)
