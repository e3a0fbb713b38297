from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records import crc32c as module
from kbroker.protocol.records.crc32c import crc32c


def test_the_published_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300), st.integers(0, 300))
def test_checksums_go_on_where_others_stopped_and_take_any_buffer(data: bytes, split: int) -> None:
    whole = crc32c(data)
    assert crc32c(data[split:], crc32c(data[:split])) == whole
    assert crc32c(memoryview(bytearray(b"xx" + data))[2:]) == whole
    assert package.crc32c(data) == whole


def test_the_package_and_what_it_imports_are_not_loaded() -> None:
    script = (
        "import sys, kbroker.protocol.records as records; "
        "print([name for name in ('crc32c', 'importlib.metadata', 'cramjam', 'lz4', 'construct') "
        "if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_package_whose_extension_has_another_name_is_imported_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    assert module._load() is package.crc32c
