"""What a scrape of /metrics costs the broker, and who asks beside it: `python -m benchmarks.scrape`.

Topics of 100 partitions, each with a record; scraped as Prometheus does, compressed. The processor's time
is that of the broker, for a scrape and for 40,000 series of it. Beside it a client sends a Produce and waits
for its answer, again and again: how long the slowest hundredth of them took, with and without somebody who
scrapes all the time.
"""

from __future__ import annotations

import argparse
import socket
import struct
import subprocess
import sys
import threading
import time
from urllib.request import urlopen

from benchmarks.compare import python_loads
from benchmarks.compare.brokers import Meter
from benchmarks.http.brokers import HttpBroker
from benchmarks.raw import produce_frame, pump

PARTITIONS = 4_000
SCRAPES = 30
_PER_TOPIC = 100
_SCRAPER = """
import sys, urllib.request
for _ in range(int(sys.argv[2])):
    asked = urllib.request.Request(sys.argv[1], headers={"Accept-Encoding": "gzip"})
    urllib.request.urlopen(asked).read()
"""


def scrape(url: str) -> int:
    """How many series there are."""
    with urlopen(url, timeout=60) as answer:
        return sum(1 for line in answer if not line.startswith(b"#"))


def asked(address: tuple[str, int], frame: bytes, until: threading.Event) -> list[float]:
    """Seconds, one after the other."""
    taken = []
    with socket.create_connection(address, timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not until.is_set():
            begin = time.perf_counter()
            connection.sendall(frame)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)
            taken.append(time.perf_counter() - begin)
    return taken


def slowest_hundredth_ms(taken: list[float]) -> float:
    return sorted(taken)[-max(len(taken) // 100, 1)] * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    topics = [f"topic-{number}" for number in range(max(1, int(PARTITIONS * scale) // _PER_TOPIC))]
    settings = {"kbroker.metrics.max.series": "100000"}
    with HttpBroker(settings=settings) as broker:
        for topic in topics:
            python_loads.create_topic(broker, topic, _PER_TOPIC)
        address = (broker.host, broker.port)
        frames = [produce_frame(topic, number, 200) for topic in topics for number in range(_PER_TOPIC)]
        pump(address, frames, len(frames))
        host, port = broker.http_address
        url = f"http://{host}:{port}/metrics"
        series = scrape(url)
        scrapes = max(2, int(SCRAPES * scale))
        meter = Meter(broker)
        subprocess.run([sys.executable, "-c", _SCRAPER, url, str(scrapes)], check=True)
        cpu_ms = meter.cpu_seconds / scrapes * 1000
        print(f"{len(frames)} partitions, {series} series: {cpu_ms:.1f} ms of CPU a scrape,", end=" ")
        print(f"{cpu_ms / series * 40_000:.1f} ms for 40,000 series")
        for beside in (False, True):
            until = threading.Event()
            taken: list[float] = []

            def ask(until: threading.Event = until, taken: list[float] = taken) -> None:
                taken += asked(address, frames[0], until)

            client = threading.Thread(target=ask)
            client.start()
            if beside:  # in a process of its own, which does not hold up the client
                subprocess.run([sys.executable, "-c", _SCRAPER, url, str(scrapes)], check=True)
            else:
                time.sleep(2 * scale)
            until.set()
            client.join()
            what = "beside scrapes" if beside else "alone"
            print(f"Produce {what}: the slowest hundredth took {slowest_hundredth_ms(taken):.2f} ms")


if __name__ == "__main__":
    main()
