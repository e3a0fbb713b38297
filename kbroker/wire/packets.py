"""A packet as it was captured, down to its part of a TCP stream: link layer, IPv4 or IPv6, TCP.

Big endian, as all of them are:

    Ethernet   destination 6, source 6, type 2 (behind each VLAN tag of 4 bytes)
    SLL        14 bytes, type 2        SLL2   type 2, 18 bytes
    NULL       address family 4, in the byte order of the machine       LOOP   the same, big endian
    IPv4       header length in its first byte, length at 2, fragment at 6, protocol at 9, addresses at 12
    IPv6       payload length at 4, next header at 6, addresses at 8, header of 40
    TCP        ports 2 + 2, sequence 4, acknowledgment 4, header length and flags 2
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple

ETHERNET: Final = 1
_RAW: Final = (12, 14, 101, 228, 229)
_NULL: Final = (0, 108)
_SLL: Final = 113
_SLL2: Final = 276
LINK_TYPES: Final = (ETHERNET, *_RAW, *_NULL, _SLL, _SLL2)

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN: Final = (0x8100, 0x88A8, 0x9100)
_TCP: Final = 6
_EXTENSIONS: Final = (0, 43, 60, 135)  # of IPv6, with their size in their second byte

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

_PORTS = struct.Struct(">HHIIH")

Address = tuple[str, int]


class Segment(NamedTuple):
    source: Address
    target: Address
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing: int  # bytes of the data that were not captured: they follow those that were


def segment_of(link_type: int, packet: bytes) -> Segment | None:
    """None: it is not TCP, or not all of its headers are there."""
    try:
        return _ip(packet, _network_start(link_type, packet))
    except (struct.error, IndexError, ValueError):
        return None


def payload_of_packet(packet: bytes) -> bytes | None:
    """The TCP data of bytes that are a packet, from Ethernet or from IP on; None: they are none."""
    for link_type in (ETHERNET, _RAW[0]):
        segment = segment_of(link_type, packet)
        if segment is not None and not segment.missing:
            return segment.data
    return None


def _network_start(link_type: int, packet: bytes) -> int:
    """Where the IP header begins."""
    if link_type == ETHERNET:
        position = 12
        while (kind := _two(packet, position)) in _VLAN:
            position += 4
        return _checked(kind, position + 2)
    if link_type == _SLL:
        return _checked(_two(packet, 14), 16)
    if link_type == _SLL2:
        return _checked(_two(packet, 0), 20)
    if link_type in _NULL:
        return 4
    if link_type in _RAW:
        return 0
    raise ValueError(f"link type {link_type}")


def _checked(kind: int, position: int) -> int:
    if kind not in (_IPV4, _IPV6):
        raise ValueError("not IP")
    return position


def _two(packet: bytes, position: int) -> int:
    return packet[position] << 8 | packet[position + 1]


def _ip(packet: bytes, start: int) -> Segment | None:
    version = packet[start] >> 4
    if version == 4:
        header = (packet[start] & 0x0F) * 4
        total = _two(packet, start + 2)
        fragmented = _two(packet, start + 6) & 0x3FFF  # more fragments, or an offset
        if packet[start + 9] != _TCP or header < 20 or fragmented:
            return None
        source, target = packet[start + 12 : start + 16], packet[start + 16 : start + 20]
        # A packet that the network card is to cut has no total length yet.
        end = start + total if total else len(packet)
        return _tcp(packet, start + header, end, source, target)
    if version == 6:
        size = _two(packet, start + 4)
        source, target = packet[start + 8 : start + 24], packet[start + 24 : start + 40]
        kind, position = packet[start + 6], start + 40
        while kind in _EXTENSIONS:
            kind, position = packet[position], position + (packet[position + 1] + 1) * 8
        end = start + 40 + size if size else len(packet)
        return _tcp(packet, position, end, source, target) if kind == _TCP else None
    return None


def _tcp(packet: bytes, start: int, end: int, source: bytes, target: bytes) -> Segment | None:
    source_port, target_port, sequence, acknowledged, flags = _PORTS.unpack_from(packet, start)
    header = (flags >> 12) * 4
    if header < 20 or start + header > end:
        return None
    data = packet[start + header : end]
    missing = end - start - header - len(data)
    return Segment(
        (str(ipaddress.ip_address(source)), source_port),
        (str(ipaddress.ip_address(target)), target_port),
        sequence,
        acknowledged if flags & ACK else -1,
        flags & 0x1FF,
        data,
        missing,
    )
