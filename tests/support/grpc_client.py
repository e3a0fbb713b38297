"""gRPC's own client, with messages and stubs as its users make them: of kbroker.proto, by gRPC's compiler."""

from __future__ import annotations

import base64
import queue
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Self

import grpc

from kbroker.grpc import PROTO


@cache
def compiled() -> tuple[ModuleType, ModuleType]:
    """The messages, and the stubs."""
    target = tempfile.mkdtemp(prefix="kbroker-grpc-")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO.parent}"]
    subprocess.run(
        [*command, f"--python_out={target}", f"--grpc_python_out={target}", PROTO.name],
        check=True,
        timeout=60,
    )
    sys.path.insert(0, target)
    try:
        return import_module("kbroker_pb2"), import_module("kbroker_pb2_grpc")
    finally:
        sys.path.remove(target)


pb: Any = compiled()[0]


class GrpcClient:
    """A channel and its stub: `client.Publish(…)`; what is refused raises grpc.RpcError."""

    def __init__(
        self, address: str, tls: grpc.ChannelCredentials | None = None, *, user: str = "", **metadata: str
    ) -> None:
        """``user``: a name and a password, with a colon. ``metadata``: of every call."""
        if tls is None:
            self.channel = grpc.insecure_channel(address)
        else:
            self.channel = grpc.secure_channel(address, tls)
        if user:
            metadata["authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        self.metadata = [(name.replace("_", "-"), value) for name, value in metadata.items()]
        self._stub = compiled()[1].KbrokerStub(self.channel)

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(self._stub, name), metadata=self.metadata)

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        self.CreateTopic(pb.CreateTopicRequest(name=name, partitions=partitions, configs=configs), timeout=20)

    def publish(self, topic: str, *values: bytes, partition: int = 0, **more: Any) -> list[Any]:
        records = [pb.NewRecord(value=value, partition=partition) for value in values]
        request = pb.PublishRequest(topic=topic, records=records, **more)
        return list(self.Publish(request, timeout=20).records)

    def consume(self, *topics: str, **subscription: Any) -> Consuming:
        return Consuming(self.Consume, pb.Subscribe(topics=topics, **subscription))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()


class Consuming:
    """A Consume call: what comes, and commits the other way."""

    def __init__(self, consume: Any, subscribe: Any) -> None:
        self._out: queue.Queue[Any] = queue.Queue()
        self._out.put(pb.ConsumeRequest(subscribe=subscribe))
        self.call = consume(iter(self._out.get, None), timeout=120)

    def next(self, kind: str) -> Any:
        """The next message, which is of this kind."""
        message = next(self.call)
        assert message.WhichOneof("kind") == kind, message
        return getattr(message, kind)

    def values(self, count: int) -> list[bytes]:
        """Of the next records, whatever else comes meanwhile."""
        found: list[bytes] = []
        while len(found) < count:
            found += [record.value for record in next(self.call).batch.records]
        return found

    def commit(self, id: int, topic: str, partition: int, offset: int) -> None:
        place = pb.Offset(topic=topic, partition=partition, offset=offset)
        self._out.put(pb.ConsumeRequest(commit=pb.Commit(id=id, offsets=[place])))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call.cancel()
        self._out.put(None)


EARLIEST = pb.Start(position=pb.POSITION_EARLIEST)
