"""The brokers that a run selects, and the recordings of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.differential.pair import Pair
from compat.differential.recordings import Recording, Recordings
from compat.harness.brokers import SETTINGS, Server, running, selection


@pytest.fixture(scope="session")
def brokers() -> Iterator[tuple[Server, ...]]:
    """The brokers that run: not those of the clients, which leave configs and features behind.

    A suite that needs them set up otherwise has a fixture of this name.
    """
    with running(SETTINGS) as servers:
        yield servers


@pytest.fixture(scope="session")
def recordings() -> Iterator[Recordings]:
    recordings = Recordings(records=selection() == "record")
    yield recordings
    recordings.save()


@pytest.fixture
def recording(recordings: Recordings, request: pytest.FixtureRequest) -> Iterator[Recording]:
    """This test's."""
    failed = request.session.testsfailed
    recording = recordings.of(request.path, request.node.name)
    yield recording
    if request.session.testsfailed > failed:
        recordings.failed(request.path)
    else:
        recording.check_all_were_expected()


@pytest.fixture
def pair(brokers: tuple[Server, ...], recording: Recording) -> Iterator[Pair]:
    pair = Pair(brokers, recording)
    yield pair
    pair.disconnect()
