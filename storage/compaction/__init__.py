"""Log compaction: the latest value of every key stays, at its offset (Kafka's log cleaner).

cleanable.py      which part of a log may be compacted, and whether it is worth it
jobs.py           what is to be done, and what was done, as values that travel between processes
offset_map.py     key hash → latest offset, in bounded memory
transactions.py   which transactions were aborted, and which markers are still needed
batch_filter.py   what stays of one batch
cleaner.py        segments into `.cleaned` files
worker.py         the process that does this, at low priority
runner.py         starting it and hearing from it
compactor.py      choosing logs, and putting their new segments in place
in_memory.py      the same for logs without files
"""
