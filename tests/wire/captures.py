"""Writes capture files: TCP conversations as packets, in the ways that captures have them."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field

SYN, ACK, PSH = 0x02, 0x10, 0x08
ETHERNET, NULL, RAW, SLL, SLL2 = 1, 0, 101, 113, 276


@dataclass
class Talk:
    """One TCP connection; each call adds packets."""

    client: tuple[str, int] = ("10.0.0.1", 40000)
    broker: tuple[str, int] = ("10.0.0.2", 9092)
    first_sequence: int = 0xFFFFFF00  # so that it wraps soon
    packets: list[bytes] = field(default_factory=list)  # from IP on

    def __post_init__(self) -> None:
        self._next = {"client": self.first_sequence, "broker": 5000}

    def open(self) -> None:
        self._add("client", SYN, b"")
        self._add("broker", SYN | ACK, b"")
        for side in ("client", "broker"):
            self._next[side] += 1
        self._add("client", ACK, b"")

    def send(self, side: str, data: bytes, size: int = 1400) -> None:
        """In segments of `size`, each acknowledged."""
        for start in range(0, len(data), size):
            part = data[start : start + size]
            self._add(side, ACK | PSH, part)
            self._next[side] = (self._next[side] + len(part)) % (1 << 32)
            self._add("broker" if side == "client" else "client", ACK, b"")

    def _add(self, side: str, flags: int, data: bytes) -> None:
        other = "broker" if side == "client" else "client"
        source, target = (self.client, self.broker) if side == "client" else (self.broker, self.client)
        tcp = struct.pack(
            ">HHIIHHHH",
            source[1],
            target[1],
            self._next[side] % (1 << 32),
            self._next[other] % (1 << 32) if flags & ACK else 0,
            5 << 12 | flags,
            65535,
            0,
            0,
        )
        addresses = ipaddress.ip_address(source[0]).packed + ipaddress.ip_address(target[0]).packed
        if len(addresses) == 8:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(data), 0, 0, 64, 6, 0) + addresses
        else:
            ip = struct.pack(">IHBB", 6 << 28, 20 + len(data), 6, 64) + addresses
        self.packets.append(ip + tcp + data)


def linked(packet: bytes, link_type: int) -> bytes:
    """A packet with the header of its link in front."""
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    if link_type == ETHERNET:
        return bytes(12) + struct.pack(">HHH", 0x8100, 7, kind) + packet  # with a VLAN tag
    if link_type == SLL:
        return bytes(14) + struct.pack(">H", kind) + packet
    if link_type == SLL2:
        return struct.pack(">H", kind) + bytes(18) + packet
    if link_type == NULL:
        return struct.pack("<I", 2) + packet
    return packet


def pcap(
    packets: list[bytes], link_type: int = ETHERNET, order: str = "<", nano: bool = False, cut: int = 65535
) -> bytes:
    """`cut`: how many bytes of each packet were captured."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    file = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)
    for number, packet in enumerate(packets):
        data = linked(packet, link_type)
        file += (
            struct.pack(order + "IIII", 1_700_000_000 + number, 5, min(len(data), cut), len(data))
            + data[:cut]
        )
    return file


def pcapng(packets: list[bytes], link_type: int = ETHERNET, order: str = "<") -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", 12 + len(body))
        return struct.pack(order + "I", kind) + size + body + size

    nanoseconds = struct.pack(order + "HHB3x", 9, 1, 9)
    file = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    file += block(1, struct.pack(order + "HHI", link_type, 0, 0) + nanoseconds + bytes(4))
    file += block(4, b"what is not read here")
    for number, packet in enumerate(packets):
        data = linked(packet, link_type)
        time = (1_700_000_000 + number) * 1_000_000_000
        head = struct.pack(order + "IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
        file += block(6, head + data)
    return file
