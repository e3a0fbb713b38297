"""Bytes are found in what people paste."""

from __future__ import annotations

import contextlib
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbroker.wire.hex_input import BROKER, CLIENT, Chunk, NotHex, chunks
from tests.wire.golden import exchange, framed

DATA = framed(exchange("Produce", 9).request) + bytes(70)


def wireshark_dump(data: bytes, indent: str = "", digits: int = 4) -> str:
    """Offset, bytes, text: as Wireshark copies it."""
    lines = []
    for start in range(0, len(data), 16):
        part = data[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{indent}{start:0{digits}x}   {part.hex(' '):47}   {text}\n")
    return "".join(lines)


def c_items(data: bytes) -> str:
    return ", ".join(f"0x{byte:02x}" for byte in data)


WRITTEN = {
    "raw": DATA,
    "plain": DATA.hex().encode(),
    "spaces": DATA.hex(" ").encode(),
    "colons": DATA.hex(":").upper().encode(),
    "lines": DATA.hex("\n", 16).encode(),
    "0x in front": b"0x" + DATA.hex().encode(),
    "C array": f"static const unsigned char pkt5[99] = {{\n{c_items(DATA)} /* a comment */\n}};\n".encode(),
    "Go literal": f"[]byte{{{c_items(DATA)}}}".encode(),
    "list": c_items(DATA).encode(),
    "Python literal": repr(DATA).encode(),
    "escaped string": (
        '"'
        + '" \\\n"'.join(
            "".join(f"\\x{byte:02x}" for byte in DATA[i : i + 16]) for i in range(0, len(DATA), 16)
        )
        + '"'
    ).encode(),
    "Wireshark": wireshark_dump(DATA).encode(),
    "Wireshark, Windows": wireshark_dump(DATA).replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN.keys())
def test_bytes_in_many_ways_of_writing(written: bytes) -> None:
    assert chunks(written) == [Chunk(DATA)]


@pytest.mark.parametrize(
    "command",
    [
        ("xxd",),
        ("xxd", "-g1"),
        ("xxd", "-p"),
        ("xxd", "-i"),
        ("hexdump", "-C"),
        ("hexdump",),
        ("od", "-tx1"),
        ("od", "-Ax", "-tx1"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("data", [DATA, DATA + b"x", framed(exchange("Fetch", 12).response)], ids=len)
def test_what_the_tools_print(command: tuple[str, ...], data: bytes) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    done = subprocess.run(command, input=data, capture_output=True, check=True, timeout=30)
    assert chunks(done.stdout) == [Chunk(data)]


def test_a_followed_stream_tells_who_sent_what() -> None:
    one, other = b"a" * 20, b"b" * 40
    dump = wireshark_dump(one, "", 8) + wireshark_dump(other, "    ", 8)
    assert chunks(dump.encode()) == [Chunk(one, CLIENT), Chunk(other, BROKER)]
    arrays = (
        f"char peer0_0[] = {{ /* Packet 4 */\n{c_items(one)} }};\nchar peer1_0[] = {{\n{c_items(other)} }};\n"
    )
    assert chunks(arrays.encode()) == [Chunk(one, CLIENT), Chunk(other, BROKER)]


def test_dumps_one_after_the_other_are_several() -> None:
    text = wireshark_dump(b"a" * 20) + "\n" + wireshark_dump(b"b" * 20)
    assert chunks(text.encode()) == [Chunk(b"a" * 20), Chunk(b"b" * 20)]


@pytest.mark.parametrize("text", [b"hello, world", b"", b"12 3"])
def test_text_without_bytes_is_refused(text: bytes) -> None:
    with pytest.raises(NotHex):
        chunks(text)


@given(st.binary(min_size=1, max_size=200))
@example(b"\\x")
def test_any_bytes_as_a_dump(data: bytes) -> None:
    assert chunks(wireshark_dump(data).encode())[0].data[:16] == data[:16]
    assert chunks(data.hex().encode()) == [Chunk(data)]


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_input_gives_bytes_or_is_refused(data: bytes) -> None:
    with contextlib.suppress(NotHex):
        chunks(data)
