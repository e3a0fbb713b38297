"""What the request layer must know of an API besides its messages. Stands in the API's handler module.

A handler module without `TRAITS` has the default ones.
"""

from __future__ import annotations

from typing import NamedTuple

_MOST_BYTES = 4 * 1024 * 1024


class Traits(NamedTuple):
    long_poll: bool = False
    """Its answer waits for what other clients do, or for time to pass: a stop does not wait for it."""
    overlaps: bool = False
    """The next request of the connection may start while the answer waits."""
    bounded_answer: bool = False
    """The request, or limits of its own, bound the answer: it is encoded in one go."""
    max_request_bytes: int | None = _MOST_BYTES
    """None: socket.request.max.bytes alone bounds it."""
    refuses_mutations_since: int | None = None
    """The first version whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""
    max_decoding_steps: int | None = None
    """For a request whose size is mostly that of its records: so many steps of decoding the rest."""
