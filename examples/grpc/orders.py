"""Orders written as a stream of batches and read as a member of a group, over gRPC, without a Kafka client.

KBROKER_GRPC says where the broker is. grpcio-tools makes the client of kbroker.proto when it starts.
"""

from __future__ import annotations

import json
import os
import queue
import sys
from collections.abc import Iterator
from typing import Any

import grpc

from kbroker.grpc import PROTO

sys.path.append(str(PROTO.parent))
kb, stubs = grpc.protos_and_services(PROTO.name)  # in a service: rather once, with grpc_tools.protoc

TOPIC, GROUP = "orders", "billing"


def batches(count: int) -> Iterator[Any]:
    for number in range(count):
        customer = "ada" if number % 3 else "bob"
        order = json.dumps({"customer": customer, "amount": number})
        record = kb.NewRecord(key=customer.encode(), value=order.encode())
        yield kb.ProduceRequest(id=number, batch=kb.PublishRequest(topic=TOPIC, records=[record]))


def write(broker: Any, count: int) -> int:
    """How many orders are written: each batch is answered by its id."""
    return sum(not answer.HasField("error") for answer in broker.Produce(batches(count)))


def read(broker: Any, count: int) -> int:
    """What the orders come to; each batch is committed once it is done."""
    requests: queue.Queue[Any] = queue.Queue()
    start = kb.Start(position=kb.POSITION_EARLIEST)
    requests.put(kb.ConsumeRequest(subscribe=kb.Subscribe(topics=[TOPIC], group=GROUP, start=start)))
    call = broker.Consume(iter(requests.get, None))
    total = done = 0
    for response in call:
        if response.HasField("batch"):
            batch = response.batch
            total += sum(json.loads(record.value)["amount"] for record in batch.records)
            done += len(batch.records)
            place = kb.Offset(topic=TOPIC, partition=batch.partition, offset=batch.next_offset)
            requests.put(kb.ConsumeRequest(commit=kb.Commit(id=done, offsets=[place])))
        elif response.HasField("committed") and response.committed.id == count:
            break
    requests.put(None)
    call.cancel()
    return total


def main() -> None:
    with grpc.insecure_channel(os.environ.get("KBROKER_GRPC", "127.0.0.1:9094")) as channel:
        broker = stubs.KbrokerStub(channel)
        try:
            broker.CreateTopic(kb.CreateTopicRequest(name=TOPIC, partitions=2))
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                raise
        written = write(broker, 100)
        total = read(broker, written)
        lag = broker.GetLag(kb.GetLagRequest(group=GROUP)).lag
        print(f"{written} orders, {total} due, lag {lag}")


if __name__ == "__main__":
    main()
