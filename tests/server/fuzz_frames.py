"""Request frames for the fuzz test: plausible ones of every API and version, and what mutation makes of them.

Plausible means that names, ids and numbers are often such that a handler finds something to do with
them: topics that exist, small counts, real record batches. Everything follows from one random
generator, so a run can be repeated.
"""

from __future__ import annotations

import importlib
import struct
from random import Random
from typing import Any

from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.message import Field, schema_of
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.protocol.types import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    Array,
)
from kbroker.requests.apis import APIS, Api

BITS = {INT8: 8, INT16: 16, INT32: 32, INT64: 64, UINT16: 16, UINT32: 32}
SIGNED = (INT8, INT16, INT32, INT64)
NAMES = ("fuzz-a", "fuzz-b", "fuzz-c", "no-such-topic", "", "..", "a b", "x" * 300, "ä", "__consumer_offsets")
# Requests that wait must not make the test wait.
SHORT = ("timeout_ms", "max_wait_ms", "session_timeout_ms", "rebalance_timeout_ms")


class Frames:
    def __init__(self, seed: int, topic_ids: list[bytes]) -> None:
        self.random = Random(seed)
        self._topic_ids = topic_ids
        self._requests = {
            api.key: getattr(
                importlib.import_module(f"kbroker.protocol.messages.{api.module}"), f"{api.name}Request"
            )
            for api in APIS
        }

    def valid(self, api: Api, version: int) -> bytes:
        """The body of a frame that decodes."""
        request = self._message(self._requests[api.key], version)
        header = RequestHeader(api.key, version, self.random.randrange(1 << 31), "fuzz")
        return encode_bytes(header, request_header_version(api.key, version)) + encode_bytes(request, version)

    def mutated(self, body: bytes) -> bytes:
        """The same with a few accidents behind the API key and version."""
        changed = bytearray(body)
        for _ in range(self.random.randint(1, 4)):
            self._mutate(changed)
        return body[:4] + bytes(changed[4:]) if self.random.random() < 0.9 else bytes(changed)

    def framed(self, body: bytes) -> bytes:
        """With its length in front; now and then with a wrong one."""
        size = len(body)
        if self.random.random() < 0.005:
            size = self.random.choice((size - 1, 0, -1, 3, (1 << 31) - 1, -(1 << 31)))
        return struct.pack(">i", size) + body

    def _mutate(self, data: bytearray) -> None:
        random = self.random
        at = random.randrange(4, len(data) + 1)
        kind = random.randrange(8)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
        elif kind == 2:
            data[at:at] = random.randbytes(random.randint(1, 8))
        elif kind == 3:
            del data[at : at + random.randint(1, 8)]
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            data[at : at + 4] = struct.pack(
                ">i", random.choice((-1, -2, 0, 1, 1 << 16, (1 << 31) - 1, -(1 << 31)))
            )
        elif kind == 6:
            data[at:at] = b"\xff" * random.randint(1, 12)  # a varint that does not end where it should
        else:
            data[at:at] = data[max(4, at - random.randint(1, 40)) : at]

    def _message(self, cls: type[Any], version: int) -> Any:
        fields = {f.name: self._value(f, version) for f in schema_of(cls) if f.present(version)}
        return cls(**fields)

    def _value(self, field: Field, version: int) -> Any:
        if field.nullable(version) and self.random.random() < 0.2:
            return None
        if field.tag is not None and self.random.random() < 0.5:
            return field.default_value()
        if field.name in SHORT:
            return self.random.randint(-1, 5)
        return self._of_type(field.type, field.name, version)

    def _of_type(self, type_: Any, name: str, version: int) -> Any:
        random = self.random
        if isinstance(type_, Array):
            return [self._of_type(type_.of, name, version) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
        if isinstance(type_, type):
            return self._message(type_, version)
        if type_ in BITS:
            return self._integer(BITS[type_], type_ in SIGNED)
        if type_ is BOOL:
            return random.random() < 0.5
        if type_ is FLOAT64:
            return random.choice((0.0, -1.0, 1e300, float("inf"), float("nan")))
        if type_ is UUID:
            return random.choice((bytes(16), random.randbytes(16), *self._topic_ids, *self._topic_ids))
        if type_ is STRING:
            return self._text(name)
        if type_ is RECORDS:
            return self._records()
        assert type_ is BYTES
        return random.randbytes(random.choice((0, 1, 10, 200)))

    def _integer(self, bits: int, signed: bool) -> int:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        usual = self.random.choice((0, 0, 1, 1, 2, 3, 10, 16, 100))
        rare = self.random.choice(
            (low, high, high - 1, self.random.randint(low, high), -1 if signed else high)
        )
        return usual if self.random.random() < 0.8 else rare

    def _text(self, name: str) -> str:
        random = self.random
        if name == "name" and random.random() < 0.3:
            return random.choice(list(TOPIC_CONFIGS))
        if name in ("value", "config_value"):
            return random.choice(("", "1", "-1", "compact", "true", "1000000", "nonsense"))
        if name in ("resource_name",):
            return random.choice((*NAMES[:3], "1", "2"))
        if name.startswith("client_software"):
            return random.choice(("fuzz", "1.0", "no good!"))
        return random.choice(NAMES[:3]) if random.random() < 0.7 else random.choice(NAMES)

    def _records(self) -> bytes:
        random = self.random
        records = [
            Record(random.choice((-1, 0, 1_700_000_000_000)), random.choice((None, b"", b"key")), b"value")
            for _ in range(random.randint(1, 3))
        ]
        producer = random.choice((-1, 1, 2))
        return build_batch(
            records,
            codec=random.choice((0, 0, 1, 2, 3, 4)),
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else random.choice((0, 1)),
            base_sequence=-1 if producer < 0 else random.choice((0, 1, 5)),
            transactional=producer >= 0 and random.random() < 0.2,
        )
