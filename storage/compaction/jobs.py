"""One compaction of one log: what is to be done and what was done, as JSON between two processes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SegmentToClean:
    base_offset: int
    size_bytes: int
    index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    directory: str
    segments: list[SegmentToClean]  # from the first of the log to the first uncleanable offset
    first_dirty_offset: int
    first_uncleanable_offset: int
    aborted: list[list[int]]  # the fields of AbortedEntry
    producers: list[list[int]]  # producer id and the fields of LastOfProducer
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_buffer_bytes: int
    dedupe_load_factor: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**{**value, "segments": [SegmentToClean(**segment) for segment in value["segments"]]})


@dataclass(frozen=True, slots=True)
class SegmentCleaned:
    """A segment is there, in `.cleaned` files that are on disk, to take the place of others."""

    base_offset: int
    sources: list[int]  # the base offsets of the segments it was made from
    size_bytes: int
    index_entries: int
    time_index_entries: int
    has_aborted: bool


@dataclass(slots=True)
class CompactionStats:
    """What compaction did: of one run, or of all since the start."""

    runs: int = 0
    segments_read: int = 0
    segments_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    map_bytes_read: int = 0
    records_read: int = 0
    records_removed: int = 0
    seconds: float = 0.0

    def add(self, other: CompactionStats) -> None:
        for name in (entry.name for entry in fields(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True)
class Finished:
    """All segments are cleaned, up to an offset that lies below the uncleanable one if the map was full."""

    end_offset: int
    stats: CompactionStats = field(default_factory=CompactionStats)


@dataclass(frozen=True, slots=True)
class Failed:
    """The job came to nothing; what was swapped in before stays."""

    reason: str
    corrupt: bool = False  # trying again would not help


Event = SegmentCleaned | Finished | Failed


def event_to_json(event: Event) -> dict[str, Any]:
    return {"event": type(event).__name__, **asdict(event)}


def event_from_json(value: dict[str, Any]) -> Event:
    name = value.pop("event")
    if name == "SegmentCleaned":
        return SegmentCleaned(**value)
    if name == "Finished":
        return Finished(value["end_offset"], CompactionStats(**value["stats"]))
    return Failed(**value)
