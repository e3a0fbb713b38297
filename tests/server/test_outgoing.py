"""What goes out over a connection when the broker has no descriptor left to send a part of a file with."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kbroker.network.outgoing import Outgoing
from kbroker.storage.files import Files
from kbroker.storage.segments.file_range import FileRange
from kbroker.storage.worker import InlineWorker


def test_without_a_descriptor_the_connection_is_closed_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def scarce(_: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    files = Files()
    (tmp_path / "file").write_bytes(bytes(100))
    part = FileRange(files, InlineWorker(), files.open(str(tmp_path / "file")), 0, 100)
    transport = MagicMock()
    outgoing = Outgoing(transport, lambda: None)
    monkeypatch.setattr(os, "dup", scarce)
    outgoing.write([b"head", part, b"tail"])
    transport.writelines.assert_called_once_with([b"head"])
    transport.abort.assert_called_once_with()
    assert "Too many open files" in caplog.text


def test_a_part_of_a_file_never_leaves_on_an_encrypted_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = Files()
    (tmp_path / "file").write_bytes(bytes(100))
    part = FileRange(files, InlineWorker(), files.open(str(tmp_path / "file")), 0, 100)
    transport = MagicMock(encrypts=True)
    outgoing = Outgoing(transport, lambda: None)
    monkeypatch.setattr(os, "dup", MagicMock(side_effect=AssertionError))
    outgoing.write([b"head", part, b"tail"])
    transport.writelines.assert_called_once_with([b"head"])
    transport.abort.assert_called_once_with()
    assert "encrypted connection" in caplog.text
