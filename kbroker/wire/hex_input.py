"""Bytes as people have them: raw, or written as hex in one of many ways.

Taken are plain hex in any spacing, `xxd`, `hexdump` (with and without -C), `od -tx1`, `tcpdump -X`,
Wireshark's "copy as" hex dump, hex stream, escaped string and C array, its "follow stream" as hex dump or C
arrays, and bytes literals of Python, Go, Java and C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_OFFSET: Final = re.compile(
    r"^(?P<indent>[ \t]*)(?:0x)?(?P<offset>[0-9a-fA-F]{4,16})(?P<colon>:?)(?:[ \t]+(?P<rest>.*))?$"
)
_BYTES: Final = re.compile(r"^[0-9a-fA-F]{2}(?:[ \t]{1,2}[0-9a-fA-F]{2})*(?=\s|\||$)")
_GROUPS: Final = re.compile(r"^(?:[0-9a-fA-F]{2}){1,8}(?: (?:[0-9a-fA-F]{2}){1,8})*(?=\s|$)")
_ARRAY: Final = re.compile(
    r"(?P<name>\w*)\s*(?:\[\s*\d*\s*\])\s*(?:=|byte)?\s*\{(?P<items>[^}]*)\}", re.DOTALL
)
_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ITEM: Final = re.compile(r"0[xX]([0-9a-fA-F]{1,2})\b")
_LITERAL: Final = re.compile(r"""(?<![\w\\])[bB]?(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)')""")
_PLAIN: Final = re.compile(r"[0-9a-fA-F\s:,;.\-]*")

CLIENT: Final = "client"
BROKER: Final = "broker"


class Chunk(NamedTuple):
    """Bytes that stood together, and who sent them, where that is known."""

    data: bytes
    sender: str | None = None


class NotHex(ValueError):
    """Text in which no bytes can be seen."""


def chunks(data: bytes) -> list[Chunk]:
    """What is in a file: raw bytes as they are, text as the bytes that it stands for."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return [Chunk(data)]
    if any(not (letter.isprintable() or letter in "\n\t\f") for letter in text):
        return [Chunk(data)]
    forms = [_arrays, _literals, _plain, _dump]
    if all(_is_dump_line(line) for line in text.splitlines() if line.strip()):
        forms.reverse()  # what stands behind the hex digits may look like anything
    for form in forms:
        found = [chunk for chunk in form(text) if chunk.data]
        if found:
            return _joined(found)
    raise NotHex("the text is no hex dump")


def _joined(found: list[Chunk]) -> list[Chunk]:
    """Pieces that one side sent one after the other are one stream."""
    joined: list[Chunk] = []
    for chunk in found:
        if joined and chunk.sender is not None and joined[-1].sender == chunk.sender:
            joined[-1] = Chunk(joined[-1].data + chunk.data, chunk.sender)
        else:
            joined.append(chunk)
    return joined


def _arrays(text: str) -> Iterator[Chunk]:
    """C arrays, and bare lists of 0x00."""
    text = _COMMENT.sub("", text)
    named = list(_ARRAY.finditer(text))
    for match in named:
        name = match["name"]
        sender = CLIENT if name.startswith("peer0_") else BROKER if name.startswith("peer1_") else None
        yield Chunk(_items(match["items"]), sender)
    if not named and not re.sub(r"0[xX][0-9a-fA-F]{1,2}\b|[\s{}\[\](),;]", "", text):
        yield Chunk(_items(text))


def _items(text: str) -> bytes:
    return bytes(int(item, 16) for item in _ITEM.findall(text))


def _literals(text: str) -> Iterator[Chunk]:
    r"""One or several literals of bytes with escapes: b"\x00\x12", or "\x00" \ over several lines."""
    if "\\x" not in text and not re.match(r"\s*[bB][\"']", text):
        return
    found = _LITERAL.findall(text)
    bare = text.strip() if not found and "\\x" in text else ""
    data = b"".join(_unescaped(double or single) for double, single in found) or _unescaped(bare)
    yield Chunk(data)


def _unescaped(text: str) -> bytes:
    import ast

    quoted = text.replace('"', '\\"') if '\\"' not in text else text
    try:
        value = ast.literal_eval(f'b"{quoted}"')
    except (SyntaxError, ValueError) as error:
        raise NotHex("the literal is none of bytes") from error
    assert isinstance(value, bytes)
    return value


def _plain(text: str) -> Iterator[Chunk]:
    """Nothing but hex digits; a blank line separates frames."""
    text = re.sub(r"(?m)^\s*#.*$", "", text)
    text = re.sub(r"\b0[xX](?=[0-9a-fA-F])", "", text)
    if not _PLAIN.fullmatch(text) or any(_is_dump_line(line) for line in text.splitlines()):
        return
    for block in re.split(r"\n\s*\n", text):
        digits = re.sub(r"[^0-9a-fA-F]", "", block)
        if len(digits) % 2:
            raise NotHex("a half byte is missing: the number of hex digits is odd")
        yield Chunk(bytes.fromhex(digits))


def _is_dump_line(line: str) -> bool:
    """An offset, and behind it bytes that are written in another way than it is."""
    match = _OFFSET.match(line)
    if match is None or not match["rest"]:
        return False
    offset = match["offset"]
    if match["colon"] or (int(offset, 16) == 0 and len(offset) > 4):
        return True
    return len(offset) in (4, 6, 7, 8) and len(match["rest"].split()[0]) != len(offset)


class _Dump:
    """A dump as its lines are read: a new one begins where the offset is 0 again."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.sender: str | None = None
        self.line: bytes = b""
        self.repeats = False

    def take(self, offset: int, line: bytes) -> None:
        self.end(offset)
        self.data += line
        self.line = line

    def end(self, offset: int) -> None:
        """Lines that were left out are there again; half a word that nobody sent is not."""
        if self.repeats and self.line:
            while len(self.data) + len(self.line) <= offset:
                self.data += self.line
        self.repeats = False
        if offset == len(self.data) - 1:
            del self.data[offset:]


def _dump(text: str) -> Iterator[Chunk]:
    """Lines of offset, bytes, and perhaps the same as text; `*` stands for more lines like the last."""
    dump = _Dump()
    indented = len({match["indent"] for match in map(_OFFSET.match, text.splitlines()) if match}) > 1
    octal = _is_octal(text)
    for written in text.splitlines():
        if written.strip() == "*":
            dump.repeats = True
            continue
        match = _OFFSET.match(written)
        if match is None:
            continue
        offset = int(match["offset"], 8 if octal else 16)
        line = _line_bytes(match)
        if not line and not indented:
            dump.end(offset)
            continue
        if offset == 0 or (indented and _sender(match) != dump.sender):
            yield Chunk(bytes(dump.data), dump.sender)
            dump = _Dump()
            dump.sender = _sender(match) if indented else None
        dump.take(len(dump.data) if indented else offset, line)
    yield Chunk(bytes(dump.data), dump.sender)


def _sender(match: re.Match[str]) -> str:
    """Wireshark's "follow stream" indents what the server sends."""
    return BROKER if match["indent"] else CLIENT


def _is_octal(text: str) -> bool:
    """`od` counts in eights: behind 16 bytes comes 20."""
    found = [match for match in map(_OFFSET.match, text.splitlines()) if match]
    return (
        len(found) > 1
        and len(found[0]["offset"]) == 7
        and found[1]["offset"] == "0000020"
        and len(_line_bytes(found[0])) == 16
    )


def _line_bytes(match: re.Match[str]) -> bytes:
    rest = match["rest"] or ""
    found = _BYTES.match(rest)
    if found is not None and (not match["colon"] or len(rest.split(None, 1)[0]) == 2):
        return bytes.fromhex(_first_16(found[0]))
    found = _GROUPS.match(rest)
    if found is None:
        return b""
    groups = found[0].split()
    if not match["colon"] and all(len(group) == 4 for group in groups):  # hexdump's words, the low byte first
        return b"".join(bytes.fromhex(group)[::-1] for group in groups)
    return bytes.fromhex("".join(groups))


def _first_16(text: str) -> str:
    """What follows 16 bytes is the text column, even where it looks like more of them."""
    parts = text.split()
    return "".join(parts[:16])
