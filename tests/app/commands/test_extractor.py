"""`rashomon build crosscheck-bench --extractor`: what is printed of a model's facts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.crosscheck_bench.test_extraction import products
from tests.support.command import Rashomon
from tests.support.fault_server import FaultServer

READ = json.dumps({"brand": "Nordbrew", "colour": "Red", "volume": "", "price": "€24.90"})


def test_a_rate_of_zero_is_printed_and_no_model_is_called_none(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    with FaultServer(lambda prompt, times: READ if "this picture" in prompt else "I cannot.") as server:
        model = f"endpoint:reader@{server.url}"
        done = Rashomon(tmp_path).run(
            "build", "crosscheck-bench", "--source", f"products={source}", "--extractor", model
        )
    (extraction,) = [line for line in done.stdout.splitlines() if line.startswith("  extraction: ")]
    assert "image (error rate 0.0, right 3, stated 3)" in extraction
    assert "replies (read 4, unparsed 4)" in extraction
    (models,) = [line for line in done.stdout.splitlines() if line.startswith("  models: ")]
    assert "None" not in models
