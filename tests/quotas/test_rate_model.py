"""A rate keeps sums; looked at sample by sample, as Kafka does it, it is the same."""

from __future__ import annotations

from math import floor

from hypothesis import given
from hypothesis import strategies as st

from kbroker.quotas.meters import Rate, Windows

NOW = 1_700_000_000_000


class PlainRate:
    """Start, last record and sum of each sample; all are looked at every time."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.samples: list[list[float]] = []
        self.current = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self.samples:
            self.samples.append([now_ms, now_ms, 0.0])
        if now_ms - self.samples[self.current][0] >= self.windows.size_ms:
            self.current = (self.current + 1) % (self.windows.number + 1)
            if self.current == len(self.samples):
                self.samples.append([])
            self.samples[self.current] = [now_ms, now_ms, 0.0]
        sample = self.samples[self.current]
        sample[1], sample[2] = now_ms, sample[2] + value

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        number, size_ms = self.windows
        for index, sample in enumerate(self.samples):
            if now_ms - sample[1] >= number * size_ms:
                self.samples[index] = [now_ms, now_ms, 0.0]
        elapsed_ms = now_ms - min((sample[0] for sample in self.samples), default=now_ms)
        full = elapsed_ms // size_ms
        if full < number - 1:
            elapsed_ms += (number - 1 - full) * size_ms
        elapsed_ms = max(elapsed_ms, 1)
        rate = sum(sample[2] for sample in self.samples) * 1000 / elapsed_ms
        return 0 if rate <= bound else floor((rate - bound) / bound * elapsed_ms + 0.5)


PAUSES = st.sampled_from([0, 1, 10, 300, 999, 1000, 2500, 12_000])
STEPS = st.lists(st.tuples(PAUSES, st.integers(-500, 2000), st.booleans()), max_size=60)


@given(STEPS, st.sampled_from([Windows(11, 1000), Windows(2, 500), Windows(1, 1000)]))
def test_a_rate_is_what_all_its_samples_say(steps: list[tuple[int, int, bool]], windows: Windows) -> None:
    rate, plain, now_ms = Rate(windows), PlainRate(windows), NOW
    for pause_ms, value, records in steps:
        now_ms += pause_ms
        if records:
            rate.record(value, now_ms)
            plain.record(value, now_ms)
        assert rate.throttle_ms(100, now_ms) == plain.throttle_ms(100, now_ms)
