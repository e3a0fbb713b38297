"""Whatever arrives on the port: one log line, that connection closed, memory bounded, the others served."""

from __future__ import annotations

import gzip
import itertools
import random
import socket
import struct
import zlib
from collections.abc import Iterator

import pytest
import zstandard

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kbroker.protocol.messages.metadata import MetadataRequest
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.protocol.records.crc32c import crc32c
from kbroker.protocol.records.legacy import build_message_set
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess, eventually

METADATA, API_VERSIONS, FETCH, CREATE_TOPICS, DESCRIBE_LOG_DIRS = 3, 18, 1, 19, 35
MIB = 1 << 20
_numbers = itertools.count()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, *, flexible: bool, client_id: bytes = b"x") -> bytes:
    start = struct.pack(">hhih", key, version, 1, len(client_id)) + client_id
    return start + (b"\0" if flexible else b"")


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded + bytes((value,)))


def random_frames() -> Iterator[tuple[str, bytes]]:
    """Random bytes behind a length that is true; a raw random length is huge nearly always."""
    generator = random.Random(5)
    for number in range(20):
        yield f"random {number}", framed(generator.randbytes(generator.randrange(1, 5000)))
        keyed = struct.pack(">hhi", generator.choice((0, 1, 3, 11, 18, 19)), 0, 1)
        yield f"random body {number}", framed(keyed + generator.randbytes(generator.randrange(1, 500)))


METADATA_V8 = header(METADATA, 8, flexible=False)
METADATA_V9 = header(METADATA, 9, flexible=True)
TOPICS_V8 = struct.pack(">i", 1) + struct.pack(">h", 3) + b"abc"

FRAMES: dict[str, bytes] = {
    "length 2^31-1": struct.pack(">i", 2**31 - 1),
    "length -1": struct.pack(">i", -1),
    "length -2^31": struct.pack(">i", -(2**31)),
    "length one above the limit": struct.pack(">i", 104_857_601),
    "empty frame": framed(b""),
    "half a header": framed(struct.pack(">hh", METADATA, 8)),
    "header without client id": framed(struct.pack(">hhi", METADATA, 8, 1)),
    "client id longer than the frame": framed(struct.pack(">hhih", METADATA, 8, 1, 30_000) + b"x"),
    "client id that is not UTF-8": framed(
        header(METADATA, 8, flexible=False, client_id=b"\xff\xfe") + TOPICS_V8 + bytes(3)
    ),
    "unknown API": framed(struct.pack(">hhih", 5000, 0, 1, -1)),
    "negative API": framed(struct.pack(">hhih", -1, 0, 1, -1)),
    "negative version": framed(struct.pack(">hhih", METADATA, -1, 1, -1)),
    "version too new": framed(struct.pack(">hhih", METADATA, 32_000, 1, -1)),
    "body missing": framed(METADATA_V8),
    "count -2": framed(header(CREATE_TOPICS, 2, flexible=False) + struct.pack(">i", -2) + bytes(5)),
    "null where null is not allowed": framed(
        header(CREATE_TOPICS, 2, flexible=False) + struct.pack(">i", -1) + bytes(5)
    ),
    "count 2^31-1": framed(METADATA_V8 + struct.pack(">i", 2**31 - 1) + bytes(100)),
    "count above what is left": framed(METADATA_V8 + struct.pack(">i", 200) + bytes(100)),
    "compact count 2^32-1": framed(METADATA_V9 + varint(2**32 - 1) + bytes(100)),
    "name longer than the frame": framed(METADATA_V8 + struct.pack(">ih", 1, 32_767) + b"abc" + bytes(3)),
    "compact name longer than the frame": framed(METADATA_V9 + varint(2) + varint(2**31) + b"abc"),
    "null name": framed(METADATA_V8 + struct.pack(">ih", 1, -1) + bytes(3)),
    "name that is not UTF-8": framed(METADATA_V8 + struct.pack(">ih", 1, 3) + b"\xff\xff\xff" + bytes(3)),
    "surrogate in a name": framed(METADATA_V8 + struct.pack(">ih", 1, 3) + b"\xed\xa0\x80" + bytes(3)),
    "bytes missing from the body": framed(METADATA_V8 + TOPICS_V8),
    "million bytes of one varint": framed(METADATA_V9 + b"\x80" * 1_000_000),
    "million bytes of one varint in the header": framed(
        header(METADATA, 9, flexible=False) + b"\x80" * 1_000_000
    ),
    "varint of six bytes": framed(METADATA_V9 + b"\x80\x80\x80\x80\x80\x01" + bytes(10)),
    "tagged field longer than the frame": framed(
        header(METADATA, 9, flexible=False) + varint(1) + varint(0) + varint(2**31) + bytes(10)
    ),
    "2^31 tagged fields": framed(header(METADATA, 9, flexible=False) + varint(2**31) + bytes(10)),
    "nested counts of 2^31-1": framed(
        header(DESCRIBE_LOG_DIRS, 1, flexible=False)
        + struct.pack(">ih", 2**31 - 1, 1)
        + b"t"
        + struct.pack(">i", 2**31 - 1)
        + bytes(1000)
    ),
    "HTTP GET": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP POST": b"POST /topics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS client hello": bytes.fromhex("16030100a5010000a10303") + bytes(150),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "text": b"hello, is this Kafka?\n",
    **dict(random_frames()),
}


def lines_about(server: ServerProcess, port: int) -> list[str]:
    return [line for line in server.log().splitlines() if f":{port}:" in line]


def new_topic(client: RawClient, **configs: str) -> str:
    name = f"hostile-{next(_numbers)}"
    given = [CreatableTopicConfig(config.replace("_", "."), value) for config, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=given)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 4).topics[0].error_code == 0
    return name


def is_served(client: RawClient) -> bool:
    return client.ask(ApiVersionsRequest(), 0).error_code == 0


def large_request_is_served(client: RawClient) -> bool:
    names = varint(20_001) + (bytes(16) + b"\0\0") * 20_000  # topics by id, none of which exists
    client.socket.sendall(framed(header(METADATA, 12, flexible=True) + names + b"\0\0\0"))
    (size,) = struct.unpack(">i", client.take(4))
    return len(client.take(size)) > 20_000


def send_for_ever(client: RawClient, request: bytes) -> None:
    while True:
        client.socket.sendall(request)


@pytest.fixture(scope="module")
def bystander(server: ServerProcess) -> Iterator[RawClient]:
    """Somebody whose connection must outlive all of it."""
    with server.client() as client:
        yield client


@pytest.mark.parametrize("sent", FRAMES.values(), ids=FRAMES.keys())
def test_nonsense_closes_its_connection_with_one_line_and_nothing_else(
    server: ServerProcess, bystander: RawClient, client: RawClient, sent: bytes
) -> None:
    port = client.socket.getsockname()[1]
    client.socket.sendall(sent)
    with pytest.raises(Closed):
        client.take(1)
    eventually(lambda: bool(lines_about(server, port)))
    (line,) = lines_about(server, port)
    assert "closing 127.0.0.1" in line
    assert len(line) < 500
    assert "Traceback" not in server.log()
    assert is_served(bystander)


def test_what_came_before_the_nonsense_is_still_answered(client: RawClient) -> None:
    good = client.frame(ApiVersionsRequest(), 0)
    client.socket.sendall(good + FRAMES["count -2"] + good)
    assert client.receive().error_code == 0
    with pytest.raises(Closed):
        client.take(1)


def test_a_frame_cut_off_by_the_end_of_the_connection_leaves_no_trace(
    server: ServerProcess, bystander: RawClient
) -> None:
    frame = framed(METADATA_V8 + TOPICS_V8 + bytes(3))
    ports = []
    for length in range(len(frame)):
        with server.client() as client:
            client.socket.sendall(frame[:length])
            client.socket.shutdown(socket.SHUT_WR)
            ports.append(client.socket.getsockname()[1])
            with pytest.raises(Closed):
                client.take(1)
    assert is_served(bystander)
    assert not any(lines_about(server, port) for port in ports)


def test_a_connection_reset_in_the_middle_of_everything_leaves_no_trace(
    server: ServerProcess, bystander: RawClient
) -> None:
    frame = framed(METADATA_V8 + TOPICS_V8 + bytes(3))
    for _ in range(50):
        client = server.client()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.sendall(frame * 20 + frame[:9])
        client.close()  # with a linger time of zero: RST
    assert is_served(bystander)
    assert "Traceback" not in server.log()


def test_memory_does_not_grow_with_what_is_claimed(server: ServerProcess, bystander: RawClient) -> None:
    assert is_served(bystander)
    before = server.memory_bytes()
    for name in ("count 2^31-1", "compact count 2^32-1", "nested counts of 2^31-1", "2^31 tagged fields"):
        for _ in range(20):
            with server.client() as client:
                client.socket.sendall(FRAMES[name])
                with pytest.raises(Closed):
                    client.take(1)
    assert server.memory_bytes() - before < 8 * MIB


def test_a_request_of_a_million_elements_is_answered_or_refused_in_bounded_memory(
    server: ServerProcess, bystander: RawClient
) -> None:
    before = server.memory_bytes()
    unknown_tags = varint(200_000) + b"".join(varint(tag) + varint(0) for tag in range(100, 200_100))
    # Flexible header, then a body that asks for no topic, with the same unknown fields behind it.
    body = encode_bytes(MetadataRequest(topics=[]), 9)[:-1] + unknown_tags
    frame = framed(header(METADATA, 9, flexible=False) + unknown_tags + body)
    partitions = varint(1_000_001) + struct.pack(">i", 7) * 1_000_000
    directories = framed(
        header(DESCRIBE_LOG_DIRS, 2, flexible=True) + varint(2) + varint(2) + b"t" + partitions + b"\0\0"
    )
    for sent in (frame, directories):
        with server.client() as client:
            client.socket.sendall(sent)
            (size,) = struct.unpack(">i", client.take(4))
            client.take(size)
    assert is_served(bystander)
    assert server.memory_bytes() - before < 100 * MIB


def produced(client: RawClient, topic: str, records: bytes, version: int) -> int:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, records)])
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), version)
    return response.responses[0].partition_responses[0].error_code


def wrapped(message_set: bytes) -> bytes:
    """A message set of format 1 inside a compressed message of another one."""
    value = gzip.compress(message_set, 1, mtime=0)
    rest = struct.pack(">bbqii", 1, 1, 0, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(rest) + 4, zlib.crc32(rest)) + rest


def test_message_sets_nested_a_thousand_times_are_refused(server: ServerProcess, client: RawClient) -> None:
    topic = new_topic(client)
    nested = build_message_set([Record(0, b"key", b"value")], magic=1)
    assert produced(client, topic, wrapped(nested), 2) == ErrorCode.NONE
    for _ in range(1000):
        nested = wrapped(nested)
    assert produced(client, topic, nested, 2) in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert is_served(client)
    assert "Traceback" not in server.log()


def test_a_batch_that_unpacks_to_gigabytes_is_refused_in_bounded_memory(
    server: ServerProcess, client: RawClient
) -> None:
    topic = new_topic(
        client, cleanup_policy="compact"
    )  # where keys are looked at, so that batches are unpacked
    before = server.memory_bytes()
    zeros = zstandard.ZstdCompressor()
    bomb = b"".join([zeros.compress(bytes(64 * MIB)) for _ in range(64)])
    empty = bytearray(build_batch([Record(0, b"key", b"value")], codec=4))
    batch = empty[:61] + bomb
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    refusals = (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
    assert produced(client, topic, bytes(batch), 9) in refusals
    assert server.memory_bytes() - before < 300 * MIB
    assert "Traceback" not in server.log()


LIMIT = 32 * MIB


@pytest.fixture(scope="module")
def tight_server() -> Iterator[ServerProcess]:
    """A broker that may hold little for its clients."""
    with ServerProcess("--in-memory", "--set", f"queued.max.request.bytes={LIMIT}") as process:
        yield process


def test_hundreds_of_unfinished_frames_cost_little_and_hinder_nobody(tight_server: ServerProcess) -> None:
    with tight_server.client() as other:
        assert is_served(other)
        before = tight_server.memory_bytes()
        frame = framed(METADATA_V8 + TOPICS_V8 + bytes(3))
        clients = [tight_server.client() for _ in range(300)]
        for number, client in enumerate(clients):
            client.socket.sendall(frame[: number % len(frame)])
        assert is_served(other)
        assert tight_server.memory_bytes() - before < 16 * MIB
        for client in clients:
            client.close()


def test_large_frames_that_never_come_do_not_keep_large_frames_of_others_out(
    tight_server: ServerProcess,
) -> None:
    before = tight_server.memory_bytes()
    hanging = [tight_server.client() for _ in range(20)]
    for client in hanging:
        client.socket.sendall(struct.pack(">i", 20 * MIB) + METADATA_V9)
    with tight_server.client() as other:
        assert is_served(other)
        assert large_request_is_served(other)
    assert tight_server.memory_bytes() - before < 2 * LIMIT
    for client in hanging:
        client.close()


def test_peers_that_hold_all_there_is_and_do_not_get_on_make_room_for_others(
    tight_server: ServerProcess,
) -> None:
    hanging = [tight_server.client() for _ in range(LIMIT // MIB)]
    for client in hanging:
        client.socket.sendall(struct.pack(">i", MIB) + METADATA_V9)
    with tight_server.client() as other:
        assert large_request_is_served(other)
    assert "makes no progress with bytes that others wait for" in tight_server.log()
    for client in hanging:
        client.close()


def test_peers_that_take_no_answers_hold_a_bounded_number_of_bytes(tight_server: ServerProcess) -> None:
    before = tight_server.memory_bytes()
    hanging = [tight_server.client() for _ in range(10)]
    for client in hanging:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.setblocking(False)
        request = client.frame(ApiVersionsRequest(), 0) * 1000
        try:
            while client.socket.send(request):
                pass
        except BlockingIOError:
            pass
    with tight_server.client() as other:
        assert is_served(other)
    assert tight_server.memory_bytes() - before < 2 * LIMIT
    for client in hanging:
        client.close()


def test_peers_that_hang_are_closed_after_the_idle_timeout() -> None:
    with ServerProcess("--in-memory", "--set", "connections.max.idle.ms=300") as server:
        silent, unfinished, large = (server.client() for _ in range(3))
        unfinished.socket.sendall(framed(METADATA_V8)[:7])
        large.socket.sendall(struct.pack(">i", 50 * MIB) + METADATA_V9)
        for client in (silent, unfinished, large):
            with client, pytest.raises(Closed):
                client.take(1)
        with server.client() as deaf:
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            request = deaf.frame(ApiVersionsRequest(), 0) * 1000
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                send_for_ever(deaf, request)
