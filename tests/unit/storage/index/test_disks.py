"""Elasticsearch's flood stage, in every form in which a cluster may set it."""

import pytest

from rag_assets.storage.index.elasticsearch.server import compute_flood_stage_bytes

GB = 1 << 30
WATERMARK = "cluster.routing.allocation.disk.watermark.flood_stage"


@pytest.mark.parametrize(
    ("size", "settings", "required"),
    [
        (100 * GB, {}, 5 * GB),
        (100 * GB, {WATERMARK: "95%"}, 5 * GB),
        (100 * GB, {WATERMARK: "0.9"}, 10 * GB),
        (10_000 * GB, {WATERMARK: "95%", f"{WATERMARK}.max_headroom": "100GB"}, 100 * GB),
        (10_000 * GB, {WATERMARK: "95%", f"{WATERMARK}.max_headroom": "-1"}, 500 * GB),
        (100 * GB, {WATERMARK: "500mb"}, 500 << 20),
    ],
)
def test_each_flood_stage_is_in_bytes(size: int, settings: dict[str, str], required: int) -> None:
    assert compute_flood_stage_bytes(size, settings) == pytest.approx(required, abs=1_000)
