"""Records of every shape, for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from kbroker.protocol.records import Record

CODECS = (0, 1, 2, 3, 4)
LEGACY_CODECS = (0, 1, 2, 3)

contents = st.one_of(
    st.none(),
    st.binary(max_size=300),
    # Lengths around the borders of one- and two-byte varints, and compressible.
    st.sampled_from([0, 1, 63, 64, 65, 8191, 8192, 8193, 20_000]).map(lambda size: b"x" * size),
)
headers = st.lists(
    st.tuples(st.text(max_size=20), st.one_of(st.none(), st.binary(max_size=80))), max_size=4
).map(tuple)
timestamps = st.one_of(
    st.just(-1),
    st.integers(1_700_000_000_000, 1_700_000_100_000),
    st.integers(0, 2**62),
)
records = st.builds(Record, timestamp=timestamps, key=contents, value=contents, headers=headers)
record_lists = st.lists(records, min_size=1, max_size=12)
# aiokafka takes a first timestamp of -1 for "none yet".
timed_record_lists = record_lists.map(
    lambda records: [record._replace(timestamp=max(record.timestamp, 0)) for record in records]
)
plain_record_lists = st.lists(
    st.builds(Record, timestamp=timestamps, key=contents, value=contents), min_size=1, max_size=12
)


def at_offsets(records: list[Record], base_offset: int = 0) -> list[Record]:
    """The records as they are read back from a batch at `base_offset`."""
    return [
        record._replace(offset=base_offset + index, offset_delta=index)
        for index, record in enumerate(records)
    ]
