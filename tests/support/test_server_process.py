"""A server that does not start leaves nothing behind."""

from __future__ import annotations

import gc

import pytest

from tests.support.server_process import ServerProcess


def test_a_failed_start_tells_why_and_closes_what_it_opened() -> None:
    server = ServerProcess("--in-memory", "--set", "num.partitions=none")
    with pytest.raises(AssertionError, match="is not a whole number"), server:
        pass
    del server
    gc.collect()  # whatever is still open warns here, and a warning fails the test
