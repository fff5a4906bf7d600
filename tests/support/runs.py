"""Finished runs, most of CMC-Bench, with answers that a test makes up, without any process or model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.engine.run_plan import create_run
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary
from app.store.store_types import NewAnswer
from app.store.summary_cache import Summaries
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Media, Record, Text, Verdict
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.portable_model_names import without_folders

Answering = Callable[[Instance], Generation]

_SHOWN = {
    "aligned": (("image", "12"), ("text", "12")),
    "image-correct": (("image", "12"), ("text", "15")),
    "text-correct": (("image", "15"), ("text", "12")),
    "both-wrong": (("image", "15"), ("text", "18")),
    "image-only": (("image", "12"),),
    "text-only": (("text", "12"),),
}


def instances(
    examples: int, question: str = "How many trams run?", picture: Media | None = None, source: str = "chartqa"
) -> list[Instance]:
    """``examples`` of a ``source`` under every condition, the image or the passage as each shows them."""
    pictures = [picture or Media(f"{number:064x}", ".png") for number in range(examples)]
    return [
        Instance(
            id=f"factual-{number:04d}/{condition}",
            group=f"factual-{number:04d}",
            condition=condition,
            question=question,
            parts=(Text(question), *((pictures[number],) if "image" in dict(references) else ()), Text("Answer.")),
            references={source: (value,) for source, value in references},
            strata={"type": "factual", "correct": "both" if condition.endswith("only") else "none", "source": source},
        )
        for number in range(examples)
        for condition, references in _SHOWN.items()
    ]


def says(text: str, peak: int | None = 2 * 10**9, seconds: float = 0.5) -> Answering:
    """Answers everything with ``text``; empty text is an answer with nothing to label."""
    return lambda instance: Generation(f"{instance.id}#0", text, "stop", (1, 2), 30, 2, seconds / 5, seconds, peak)


def make_run(
    workspace: Workspace,
    name: str,
    items: Sequence[Instance],
    answering: Answering,
    *,
    model: str = "policy:always-image",
    failing: Callable[[Instance], bool] = lambda _: False,
    undecided: Callable[[Instance], bool] = lambda _: False,
    data: Path | None = None,
    benchmark: Benchmark | None = None,
) -> Path:
    """A finished run: ``answering`` gives the answers, the first judge labels them; it fails on those that are
    ``failing`` and does not know the label of those that are ``undecided``.
    """
    benchmark = benchmark or get_benchmark("cmc-bench")
    judge = get_judge(benchmark.judges[0])
    assert isinstance(judge, FunctionJudge)
    (spec,) = BatchSpec(benchmark=benchmark.name, model=(model,), name=name).runs()

    def fill(store: RunStore) -> None:
        store.use_engine({"engine": "policy", "model": without_folders(model), "versions": {"mlx-vlm": "0.7.10"}})
        answers = []
        for ordinal, instance in enumerate(items):
            generation = answering(instance)
            verdicts: tuple[Verdict, ...] = ()
            if failing(instance):
                verdicts = (Verdict(judge.id, "judge-failed", reason="no label in its reply"),)
            elif undecided(instance):
                verdicts = (Verdict(judge.id, "undecided", reason="it names both values"),)
            elif generation.finish_reason != "error":
                verdicts = (judge.judge(Record(instance, (generation,))),)
            answers.append(NewAnswer(ordinal, instance.condition, 0, "digest", generation, True, verdicts))
        store.commit(answers)

    folder = workspace.runs_folder / name
    workspace.make()
    identity = {
        **spec.identity(),
        "data digest": "d" * 64,
        "weights digest": "e" * 64,
        "quantisation": "4-bit",
        "engine": "policy",
        "device": "cpu",
    }
    create_run(workspace, spec, folder, identity, items, data=data, fill=fill)
    return folder


def read_all(summaries: Summaries) -> list[RunSummary]:
    """Return the summaries of all runs, as the last of those that are read one by one."""
    *_, (runs, _) = summaries.read_incrementally()
    return runs
