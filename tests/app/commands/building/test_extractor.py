"""`rashomon build crosscheck-bench --extractor`: what is printed of a model's facts, and a server that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.crosscheck_bench.test_extraction import products
from tests.support.command import Rashomon, free_port
from tests.support.fault_server import FaultServer
from tests.support.trust import agree_to

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


@pytest.mark.slow
def test_a_server_that_is_down_ends_the_construction_as_documented(tmp_path: Path) -> None:
    source = products(tmp_path / "source")
    address = f"http://127.0.0.1:{free_port()}/v1"
    agree_to(address)
    options = ("--extractor", f"endpoint:reader@{address}")
    done = Rashomon(tmp_path).run("build", "crosscheck-bench", "--source", f"products={source}", *options, code=3)
    assert "the server cannot be reached" in done.stderr
