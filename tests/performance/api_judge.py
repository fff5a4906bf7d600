"""Slowdown of a run by an API judge that takes 200 ms a reply.

Run it by hand: ``python -m tests.performance.api_judge [ANSWERS] [ANSWERS A SECOND]``. The judge is a server on loopback.
Both runs, without the judge and with it, are of the same instances through the real command line, turn about, and what is
printed is the ratio of the medians. It asserts nothing. A judge that is asked eight at a time labels 40 answers a second at
200 ms: a model that is faster than that has to wait for it in the end.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.performance.large_run import EXAMPLE, build
from tests.support.command import Rashomon
from tests.support.fault_server import FaultServer

LATENCY_S = 0.2
TIMES = 3


def processor() -> float:
    """Seconds of processor time that the commands run so far have taken."""
    times = os.times()
    return times.children_user + times.children_system


def main(answers: int, per_second: float) -> None:
    """Print the ratio."""
    reply = '{"label": "IMAGE"}'
    with (
        tempfile.TemporaryDirectory() as scratch,
        FaultServer(lambda prompt, times: reply, latency=LATENCY_S) as server,
    ):
        took: dict[str, list[float]] = {"alone": [], "judged": []}
        build(Path(scratch) / "build", answers // EXAMPLE)
        seconds = [1 / per_second] * 2
        worked: dict[str, list[float]] = {"alone": [], "judged": []}
        for number in range(TIMES):
            for how, judge in (("alone", "match"), ("judged", f"endpoint:judge@{server.url}")):
                home = Path(scratch) / f"{how}-{number}"
                home.mkdir()
                rashomon = Rashomon(home, {"seconds": seconds})
                began, before = time.perf_counter(), processor()
                spec = ("--benchmark", "cmc-bench", "--model", "policy:uniform", "--data", Path(scratch) / "build")
                rashomon.run("batch", *spec, "--judge", "match", "--judge", judge, "--display", "none")
                took[how].append(time.perf_counter() - began)
                worked[how].append(processor() - before)
        alone, judged = statistics.median(took["alone"]), statistics.median(took["judged"])
        print(f"{answers} answers, {server.requests // TIMES} judged by calls of {LATENCY_S * 1000:.0f} ms")
        added = statistics.median(worked["judged"]) - statistics.median(worked["alone"])
        print(f"the judge adds {added:.2f} s of processor time, in a thread beside the answering")
        print(f"without {alone:.2f} s, with {judged:.2f} s: {judged / alone:.3f} times as long")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    main(count, float(sys.argv[2]) if len(sys.argv) > 2 else 20.0)
