"""Whatever clients call their metrics: Prometheus reads all of /metrics."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus

from kbroker.telemetry.clients import Push
from tests.handlers.conftest import NOW_MS, Cluster
from tests.observability.client_metrics.pushed import counter, gauge, metrics_data
from tests.support.metrics import Samples
from tests.support.steps import result_of

WORDS = st.sampled_from(
    [
        "a",
        "b",
        "total",
        "created",
        "info",
        "bucket",
        "sum",
        "count",
        "_",
        "1",
        "ü",
        "\n",
        '"',
        "\\",
        "le",
        "#",
    ]
)
NAMES = st.lists(WORDS, max_size=4).flatmap(
    lambda words: st.sampled_from([".".join(words), "_".join(words), "org.apache.kafka." + "".join(words)])
)
METRICS = st.builds(
    lambda make, name, value, labels: make(name, value, **labels),
    st.sampled_from([gauge, counter]),
    NAMES,
    st.one_of(st.integers(-5, 5), st.floats()),
    st.dictionaries(NAMES.filter(lambda name: name not in ("name", "value", "delta")), NAMES, max_size=3),
)


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.lists(st.lists(METRICS, max_size=8), min_size=1, max_size=3), NAMES)
def test_any_names_are_read_by_prometheus(pushes: list[list[object]], client_id: str) -> None:
    cluster = Cluster({"node.id": "1"})
    receiver = cluster.broker.client_metrics
    for number, metrics in enumerate(pushes):
        data = metrics_data(*metrics, group_id=client_id)  # type: ignore[arg-type]
        push = Push(b"%d" % number * 16, {"client_id": client_id}, data, 1000, False, NOW_MS)
        result_of(receiver.receive(push))
    for openmetrics, parse in ((False, parse_prometheus), (True, parse_openmetrics)):
        scrape = cluster.broker.exposition.scrape(openmetrics=openmetrics)
        parts = []
        while not scrape.ended:
            parts.append(result_of(scrape.part()))
        found = Samples(parse(b"".join(parts).decode()))
        told = [name for (name, _) in found.found if name.startswith("kbroker_client_")]
        others = len(found.labels("kbroker_client_info"))
        assert len(told) - others == receiver.values.series
    cluster.catalog.close()
