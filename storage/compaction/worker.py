"""The process that compacts, at low priority: `python -m kbroker.storage.compaction.worker`.

A job per line on standard input, its events on standard output, as JSON. It ends when its input ends: when
the broker has nothing more to do, or is gone, even in the middle of a job.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading

from kbroker.storage.compaction.jobs import CleaningJob, event_to_json
from kbroker.storage.compaction.runner import run
from kbroker.storage.files import Files

_NICE = 10


def main() -> None:
    os.nice(_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker, which then ends this process
    jobs: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            jobs.put(line)
        os._exit(0)  # whatever is unfinished is of no use to anybody

    threading.Thread(target=listen, daemon=True).start()
    files = Files()
    while True:
        job = CleaningJob.from_json(json.loads(jobs.get()))
        for event in run(files, job):
            sys.stdout.write(json.dumps(event_to_json(event)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
