"""Times of a filter and of a page of rows in a run of 100,000 samples, and the interface's wait for them.

Run it by hand: ``python -m tests.performance.samples [SAMPLES]``. It prints, and asserts nothing.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.store.run_store import RunStore
from app.store.sample_lists import SampleFilter
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import FinishReason, Generation, Instance, Media, Text, Verdict

CONDITIONS = ("aligned", "image-correct", "text-correct", "both-wrong")
LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
KINDS = ("factual", "conceptual", "mathematical")
TIMES = 7
JUDGES = ("match@4", "openai:gpt-5-mini@cmc-bench-2")


def instances(count: int) -> Iterator[Instance]:
    """Yield ``count`` instances, four per example, with prompts and passages of the usual length."""
    for number in range(count):
        group, condition = f"factual-{number // 4:012x}", CONDITIONS[number % 4]
        question = f"What is the value of the bar for the year {1900 + number % 120} in district {number // 7}?"
        passage = f"In district {number // 7} the value was {number}. " * 12
        yield Instance(
            f"{group}/{condition}",
            group,
            condition,
            question,
            (Text(question), Media(f"{number // 4:064x}", ".png"), Text(passage), Text("Answer briefly.")),
            {"image": (str(number),), "text": (str(number + 1),)},
            {"type": KINDS[number // 4 % 3], "source": "chartqa", "correct": condition},
        )


def make(workspace: Workspace, name: str, count: int) -> Path:
    """Create a finished run of ``count`` samples with two judges that sometimes disagree."""
    from app.run_spec import BatchSpec

    benchmark = get_benchmark("cmc-bench")
    (spec,) = BatchSpec(benchmark="cmc-bench", model=("policy:uniform",), name=name).runs()
    meta = {
        "spec": spec.model_dump(mode="json"),
        "identity": spec.identity(),
        "data": None,
        "conditions": list(benchmark.conditions),
        "correct": {c: [code for code in LABELS if benchmark.correct(c, code)] for c in benchmark.conditions},
        "created": 0.0,
        "state": {"state": "done"},
    }
    folder = workspace.runs_folder / name
    folder.mkdir(parents=True)
    with RunStore.create(folder, meta, instances(count)) as store:
        store.use_engine({"engine": "policy"})
        answers = []
        for number in range(count):
            condition = CONDITIONS[number % 4]
            text = f"Looking at the chart, the bar of the district says {number}, so the answer is {number}. " * 4
            reason: FinishReason = "error" if number % 97 == 0 else "length" if number % 13 == 0 else "stop"
            generation = Generation(
                f"{number}#0", text, reason, tuple(range(90)), 800, 90, 0.1, 1.0 + number % 7, 10**9
            )
            verdicts: list[Verdict] = []
            if reason != "error":
                label = LABELS[number * 7 % 5]
                verdicts = [
                    Verdict(JUDGES[0], "labelled", label, "because"),
                    Verdict(JUDGES[1], "labelled", label, "so"),
                ]
                if number % 11 == 0:
                    verdicts[1] = Verdict(JUDGES[1], "labelled", "NEITHER", "so")
                if number % 101 == 0:
                    verdicts[0] = Verdict(JUDGES[0], "unparsed", None, "empty")
            answers.append(NewAnswer(number, condition, 0, "d" * 64, generation, True, tuple(verdicts)))
            if len(answers) == 2000:
                store.commit(answers)
                answers = []
        store.commit(answers)
    return folder


def timed(what: Callable[[], Any]) -> tuple[float, float]:
    """Return the (median, maximum) milliseconds of a few calls."""
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        what()
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took), max(took)


FILTERS = {
    "all": SampleFilter(),
    "one condition": SampleFilter(conditions=("image-correct",)),
    "a stratum": SampleFilter(strata=(("type", "factual"),)),
    "a label": SampleFilter(labels=("TEXT",)),
    "wrong": SampleFilter(outcomes=("wrong",)),
    "wrong, overrides first": SampleFilter(judges=("override:me@1", JUDGES[0]), outcomes=("wrong",)),
    "errors": SampleFilter(outcomes=("error",)),
    "judges disagree": SampleFilter(disagree=True),
    "mismatch": SampleFilter(mismatch=True),
    "cut": SampleFilter(truncated=True),
    "overridden": SampleFilter(overridden=True),
    "text that is rare": SampleFilter(words=("district 4711?",)),
    "text in every answer": SampleFilter(words=("Looking At",)),
    "text that is nowhere": SampleFilter(words=("nowhere",)),
    "text that is nowhere, not ASCII": SampleFilter(words=("Straße",)),
    "wrong, a condition, a stratum, text": SampleFilter(
        conditions=("image-correct",), strata=(("type", "factual"),), outcomes=("wrong",), words=("district 12",)
    ),
    "longest first": SampleFilter(order="longest"),
}


def main(count: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        folder = make(Workspace(Path(scratch)), "large", count)
        size = (folder / "run.sqlite").stat().st_size / 2**20
        print(f"{count} samples made in {time.perf_counter() - began:.0f} s, {size:.0f} MiB")
        print("opened and closed: {:.1f} ms (at most {:.1f})".format(*timed(lambda: RunStore.read(folder).close())))
        with RunStore.read(folder) as store:
            for name, item in FILTERS.items():
                query = item if item.judges else SampleFilter(**{**_fields(item), "judges": JUDGES[:1]})
                matches = len(store.sample_ordinals(query))
                middle, most = timed(lambda query=query: store.sample_ordinals(query))  # type: ignore[misc]
                print(f"{name:38} {matches:7} {middle:8.1f} ms (at most {most:.1f})")
            page = list(range(count // 2, count // 2 + 60))
            print(
                "a page of 60 rows: {:.1f} ms (at most {:.1f})".format(*timed(lambda: store.sample_rows(page, JUDGES)))
            )
            print("siblings: {:.1f} ms (at most {:.1f})".format(*timed(lambda: store.siblings(count // 2, JUDGES))))
            print("strata: {:.1f} ms (at most {:.1f})".format(*timed(store.strata)))


def _fields(item: SampleFilter) -> dict[str, Any]:
    return {name: getattr(item, name) for name in SampleFilter.__dataclass_fields__}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
