"""Finished runs of every built-in benchmark whose answers have every outcome, made without any process or model.

Runs of a benchmark in a workspace share its build, and so have the same instances and can be compared. The answers follow from
the seed, the shares and the build.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from app.engine.run_plan import create_run
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.build import Build, BuildOptions
from benchmarks.contra4.contra4_constants import CATEGORIES, MODALITIES, SIZES
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.k_passages.k_passages_build import Examples, build_design
from benchmarks.k_passages.k_passages_design import PassageDesign
from benchmarks.plain import DATA_SETS
from benchmarks.protocols.protocols import Protocol
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Record, Request, Verdict
from benchmarks.vqa.vqa_sources import GQA_QUESTIONS, OKVQA_ANNOTATIONS, OKVQA_QUESTIONS
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.portable_model_names import without_folders
from tests.support.command import ROOT
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.contra4 import PLAIN, Scripted, write_source
from tests.support.data.contra4 import row as contra4_row
from tests.support.data.crosscheck_bench import row as crosscheck_row
from tests.support.data.crosscheck_bench import write_rows
from tests.support.data.mmkc_bench import whole_folder
from tests.support.data.plain import write_rows_of
from tests.support.data.pope import small_pope
from tests.support.data.small import mmmu_rows, original_chartqa, write_picture
from tests.support.retrieval_logs import write_log

SHARES: Mapping[str, float] = MappingProxyType(
    {
        "right": 0.38,
        "wrong": 0.22,
        "empty": 0.04,
        "reasoning": 0.04,
        "unreadable": 0.04,
        "cut": 0.05,
        "cut-empty": 0.03,
        "error": 0.05,
        "judge-failed": 0.03,
        "undecided": 0.04,
        "unjudged": 0.04,
        "pending": 0.04,
    }
)
"""The share of the instances that gets each outcome.

- ``right``, ``wrong``: labelled by the judge, with the full score or with less.
- ``empty``, ``reasoning``: nothing, or nothing but reasoning.
- ``unreadable``: a text that the judge finds nothing to label in; where it labels every text, any label.
- ``cut``, ``cut-empty``: ended by the token limit, after a text or within the reasoning.
- ``error``: the request failed; under a protocol of several steps, at any of them.
- ``judge-failed``: the judge gave no usable reply.
- ``undecided``: a text that the judge leaves undecided; where it decides on every text, an undecided verdict all the same.
- ``unjudged``: answered, and not judged yet.
- ``pending``: not answered yet; under a protocol of several steps, perhaps answered in part.

An answer that is judged by a sibling's answer stays unjudged while that one is pending, whatever its outcome is to be.
"""

MODEL = "org/every-outcome"
"""The model of the runs, without the seed that ends its name."""

_FIRST_ANSWER = 1_750_000_000.0
"""The time of a run's first answer, in seconds since 1970."""

_MOST_VALUES = 8
_EMPTY = ("", " \n")
_REASONING = "<think>The image shows a number, and the text shows another.</think>\n"
_UNFINISHED = "<think>The image shows a number, and"
_FIRST_STAGES = (
    "The brand logo is at [10, 10, 70, 40].",
    "The price tag is at [90, 80, 150, 110], and something at [1, 1, 2, 2].",
    "Nothing stands out.",
)
"""The answers to all steps but the last one."""


def every_outcome_run(
    workspace: Workspace, benchmark: str, name: str, *, seed: int = 0, shares: Mapping[str, float] = SHARES
) -> Path:
    """Make the run ``name`` of a benchmark, and its build if there is none; return the run's folder.

    Of the instances, ``shares`` get each outcome, in exact proportion; missing outcomes get none. The first judge labels them.
    """
    definition = get_benchmark(benchmark)
    build = every_outcome_build(workspace, benchmark)
    judge = get_judge(definition.judges[0])
    instances = _instances(definition, build)
    present = {instance.condition for instance in instances}
    conditions = [c for c in definition.conditions if c in present] if definition.default_conditions else ()
    (spec,) = BatchSpec(benchmark=benchmark, model=(f"{MODEL}-{seed}",), conditions=tuple(conditions), name=name).runs()
    answering = _Answering(definition, judge, spec.to_protocol(), instances, seed)

    def fill(store: RunStore) -> None:
        store.use_engine({"engine": "policy", "model": without_folders(spec.model), "versions": {"mlx-vlm": "0.7.10"}})
        outcomes = planned_outcomes([instance.id for instance in instances], seed, shares)
        store.commit([answer for ordinal in range(len(instances)) for answer in answering.answers(ordinal, outcomes)])
        store.set_meta("state", {"state": "done", "note": ""})

    identity = {
        **spec.identity(),
        "data digest": build.digest,
        "weights digest": "e" * 64,
        "quantisation": "4-bit",
        "engine": "policy",
        "device": "cpu",
    }
    folder = workspace.runs_folder / name
    create_run(workspace, spec, folder, identity, instances, data=build.path, fill=fill)
    return folder


def every_outcome_build(workspace: Workspace, benchmark: str) -> Build:
    """Return the workspace's build of a benchmark, made from sources written here if there is none."""
    folder = workspace.build_folder(benchmark)
    if folder.exists():
        return Build.open(folder)
    workspace.make()
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as sources:
        return _BUILDS[benchmark](workspace, Path(sources), folder)


def planned_outcomes(ids: Sequence[str], seed: int, shares: Mapping[str, float] = SHARES) -> dict[str, str]:
    """Return the outcome of each instance: the ids in an order drawn by the seed, divided in proportion to the shares."""
    order = sorted(ids, key=lambda name: Random(f"{seed} order {name}").random())
    total, below, start = sum(shares.values()), 0.0, 0
    outcomes: dict[str, str] = {}
    for outcome, share in shares.items():
        below += share
        end = round(len(order) * below / total)
        outcomes |= dict.fromkeys(order[start:end], outcome)
        start = end
    return outcomes


def _instances(benchmark: Benchmark, build: Build) -> list[Instance]:
    return list(benchmark.instances(build, next(iter(benchmark.prompt_sets))))


class _Answering:
    """The answers of one run, which are made in the order of its instances."""

    def __init__(
        self, benchmark: Benchmark, judge: FunctionJudge, protocol: Protocol, instances: Sequence[Instance], seed: int
    ) -> None:
        self._benchmark, self._judge, self._protocol, self._seed = benchmark, judge, protocol, seed
        self._instances = instances
        self._known = {(instance.group, instance.condition) for instance in instances}
        self._done: dict[tuple[str, str], Generation] = {}

    def answers(self, ordinal: int, outcomes: Mapping[str, str]) -> list[NewAnswer]:
        """Return the steps of an instance's answer; none, or not all of them, if it is pending."""
        instance = self._instances[ordinal]
        outcome, random = outcomes[instance.id], Random(f"{self._seed} answer {instance.id}")
        earlier, request = self._earlier_steps(instance, outcome, random)
        steps = [(step, generation, False) for step, generation in earlier]
        verdict = None
        if outcome != "pending":
            generations = tuple(generation for _, generation in earlier)
            generation, verdict = self._last_step(request, Record(instance, generations), outcome, random)
            self._done[instance.group, instance.condition] = generation
            steps.append((request, generation, True))
        return [
            NewAnswer(
                ordinal,
                instance.condition,
                step.step,
                step.digest,
                _measured(generation, random),
                is_last,
                (verdict,) if is_last and verdict is not None else (),
                _FIRST_ANSWER + ordinal + step.step / 2,
            )
            for step, generation, is_last in steps
        ]

    def _earlier_steps(
        self, instance: Instance, outcome: str, random: Random
    ) -> tuple[list[tuple[Request, Generation]], Request]:
        """Return all steps but the last, and the request of the last. Errors and pending answers may end at any step."""
        steps: list[tuple[Request, Generation]] = []
        while True:
            generations = [generation for _, generation in steps]
            request = self._protocol.next(instance, generations)
            assert request is not None
            generation = Generation(request.id, random.choice(_FIRST_STAGES), "stop")
            ends = outcome in ("error", "pending") and random.random() < 0.5
            if ends or self._protocol.next(instance, (*generations, generation)) is None:
                return steps, request
            steps.append((request, generation))

    def _last_step(
        self, request: Request, record: Record, outcome: str, random: Random
    ) -> tuple[Generation, Verdict | None]:
        """Return the last generation of ``record``, and the verdict on it if it is judged."""
        instance = record.instance
        if outcome == "error":
            return Generation(request.id, "", "error", error="the server closed the connection"), None
        needed = self._benchmark.basis(instance.condition)
        sibling = (instance.group, needed or "")
        record = replace(record, basis=self._done.get(sibling))
        generation = self._generation(request, record, outcome, random)
        if outcome == "unjudged" or (sibling in self._known and sibling not in self._done):
            return generation, None
        verdict = self._verdict(record, generation)
        if outcome == "judge-failed":
            verdict = Verdict(self._judge.id, "judge-failed", reason="no label in its reply", raw="It depends.")
        elif outcome == "undecided" and verdict.status != "undecided":
            verdict = Verdict(self._judge.id, "undecided", reason="it names both values")
        return generation, verdict

    def _generation(self, request: Request, record: Record, outcome: str, random: Random) -> Generation:
        if outcome in ("empty", "reasoning", "cut-empty"):
            text = {"empty": random.choice(_EMPTY), "reasoning": _REASONING, "cut-empty": _UNFINISHED}[outcome]
            return Generation(request.id, text, "length" if outcome == "cut-empty" else "stop")
        texts = _texts(self._benchmark, record.instance)
        if outcome in ("cut", "judge-failed", "unjudged"):
            return Generation(request.id, random.choice(texts), "length" if outcome == "cut" else "stop")
        by_label: dict[str, list[Generation]] = {}
        others: dict[str, list[Generation]] = {}
        for text in texts:
            generation = Generation(request.id, text, "stop")
            verdict = self._verdict(record, generation)
            suits = by_label if self._suits(outcome, record.instance, verdict) else others
            suits.setdefault(verdict.label or verdict.status, []).append(generation)
        by_label = by_label or others
        return random.choice(by_label[random.choice(sorted(by_label))])

    def _suits(self, outcome: str, instance: Instance, verdict: Verdict) -> bool:
        if outcome in ("right", "wrong"):
            labels = verdict.flags or ((verdict.label,) if verdict.label else ())
            is_right = any(self._benchmark.score(instance.condition, label) == 1 for label in labels)
            return bool(labels) and is_right == (outcome == "right")
        return verdict.status == ("unparsed" if outcome == "unreadable" else "undecided")

    def _verdict(self, record: Record, generation: Generation) -> Verdict:
        return self._judge.judge(replace(record, generations=(*record.generations, generation)))


def _texts(benchmark: Benchmark, instance: Instance) -> list[str]:
    """Return texts of which a judge finds some right and some wrong, and some neither: options, values, and others."""
    values = dict.fromkeys(value for values in instance.references.values() for value in values)
    stated = list(dict.fromkeys((*benchmark.options(instance), *list(values)[:_MOST_VALUES])))
    first, second = (*stated, "this", "that")[:2]
    return list(
        dict.fromkeys(
            (
                *stated,
                *(f"The answer is {value}." for value in stated),
                f"{first} and {second}",
                f"One source says {first}, another says {second}.",
                benchmark.abstention_phrase,
                "I cannot tell.",
                "Yes.",
                "No.",
                "987654",
                "Bananas are yellow.",
            )
        )
    )


def _measured(generation: Generation, random: Random) -> Generation:
    """Return the generation with tokens, times and memory; an error has none."""
    if generation.finish_reason == "error":
        return generation
    count = max(1, len(generation.text) // 4)
    return replace(
        generation,
        tokens=tuple(range(count)),
        prompt_tokens=random.randint(200, 400),
        completion_tokens=count,
        prefill_s=random.uniform(0.05, 0.1),
        decode_s=0.02 * count,
        peak_memory=random.randint(2 * 10**9, 3 * 10**9),
    )


# --- builds --------------------------------------------------------------------------------------


def _build(benchmark: str, sources: Iterable[tuple[str, Path]], out: Path, **options: Any) -> Build:
    pairs = [(name, str(place)) for name, place in sources]
    return get_benchmark(benchmark).build(pairs, out, BuildOptions(**options))


def _cmc(workspace: Workspace, folder: Path, out: Path) -> Build:
    charts, diagrams = original_chartqa(folder / "charts"), mmmu_rows(folder / "diagrams")
    rows = ROOT / "assets" / "demo" / "rows.csv"
    return _build("cmc-bench", [("chartqa", charts), ("mmmu", diagrams), ("rows", rows)], out, per_stratum=12)


def _clash(workspace: Workspace, folder: Path, out: Path) -> Build:
    relations = {
        "left-right": ("left of", "right of"),
        "above-below": ("above", "below"),
        "front-behind": ("in front of", "behind"),
    }
    changes = {
        "animals": ("object", "dog", "cat"),
        "food": ("object", "apple", "pizza"),
        "colors": ("attribute", "red", "blue"),
        "numbers": ("attribute", "two", "three"),
    }
    pictures, rows = 12, []
    for number in range(1, pictures + 1):
        for relation, (before, after) in relations.items():
            question = f"Where is dog {number}, {relation}?"
            rows.append(
                own_sample(
                    number, question=question, relation=relation, changed_original=before, changed_conflicting=after
                )
            )
        for category, (change, before, after) in changes.items():
            row = own_sample(
                number,
                change_type=change,
                category=category,
                original_caption=f"A {before} by tree {number}.",
                conflicting_caption=f"A {after} by tree {number}.",
                question=f"What of the {category} is by tree {number}?",
                image_only=before,
                text_only=after,
                changed_original=before,
                changed_conflicting=after,
            )
            del row["relation"]
            rows.append(row)
    return _build("clash", [("rows", own_folder(folder, rows, pictures=pictures))], out)


def _mmkc(workspace: Workspace, folder: Path, out: Path) -> Build:
    return _build("mmkc-bench", [("published", whole_folder(folder, per_type=6))], out)


def _pope(workspace: Workspace, folder: Path, out: Path) -> Build:
    small_pope(folder, images=12)
    return _build("pope", [("pope", folder), ("images", folder)], out)


def _okvqa(workspace: Workspace, folder: Path, out: Path) -> Build:
    """Build three questions an image, whose ten people agree in different numbers, so that all scores occur."""
    people = (
        ["surfboard"] * 8 + ["board"] * 2,
        ["2"] * 10,
        ["red"] * 4 + ["pink"] * 3 + ["rose"] * 2 + ["white"],
    )
    questions, annotations = [], []
    for number in range(1, 41):
        write_picture(folder / "val2014" / f"COCO_val2014_{number:012d}.jpg", number, "JPEG")
        for place, answers in enumerate(people):
            key = 10 * number + place
            questions.append({"image_id": number, "question": f"What is it, {number}?", "question_id": key})
            annotations.append(
                {
                    "image_id": number,
                    "question_id": key,
                    "question_type": "one" if place else "other",
                    "answers": [{"answer": answer, "answer_id": n} for n, answer in enumerate(answers, 1)],
                }
            )
    types = {"one": "Vehicles and Transportation", "other": "Other"}
    (folder / OKVQA_QUESTIONS).write_text(json.dumps({"questions": questions}), "utf-8")
    (folder / OKVQA_ANNOTATIONS).write_text(json.dumps({"annotations": annotations, "question_types": types}), "utf-8")
    return _build("okvqa", [("okvqa", folder)], out)


def _gqa(workspace: Workspace, folder: Path, out: Path) -> Build:
    rows: dict[str, Any] = {}
    for number in range(1, 41):
        write_picture(folder / "images" / f"n{number}.jpg", number, "JPEG")
        for place, (structure, answer) in enumerate(
            (("verify", "yes"), ("choose", "no"), ("query", f"thing {number}"))
        ):
            rows[f"{10 * number + place}"] = {
                "imageId": f"n{number}",
                "question": f"What about the {structure} of object {number}?",
                "answer": answer,
                "types": {"structural": structure},
            }
    (folder / GQA_QUESTIONS[0]).write_text(json.dumps(rows), "utf-8")
    return _build("gqa", [("gqa", folder)], out)


def _crosscheck(workspace: Workspace, folder: Path, out: Path) -> Build:
    rows = (crosscheck_row(task, number) for task in TASKS for number in range(4))
    return _build("crosscheck-bench", [("rows", write_rows(folder, rows))], out)


def _contra4(workspace: Workspace, folder: Path, out: Path) -> Build:
    """Build every combination of modalities with either kind of negatives, twice, and predicted captions."""
    groups = [group for size in SIZES for group in combinations(PLAIN, size)]
    rows = [
        contra4_row(
            f"{number}-{negatives}-{repetition}",
            group,
            "ABCD"[(number + repetition) % len(group)],
            question=f"Which of the {negatives} scenes is loudest, {repetition}?",
            selection_type=negatives,
            category=CATEGORIES[(number + repetition) % len(CATEGORIES)],
        )
        for negatives in ("random", "similarity")
        for number, group in enumerate(groups)
        for repetition in range(2)
    ]
    captioner = Scripted("captioner", lambda prompt: "A room with a dog that barks at a white teapot on drums")
    captioners = dict.fromkeys(MODALITIES, captioner)
    return _build("contra4", [("published", write_source(folder, rows))], out, captioners=captioners)


def _retrieval(workspace: Workspace, folder: Path, out: Path) -> Build:
    """Build a log that states what its sources answer, of every condition."""
    lines = []
    for number in range(60):
        write_picture(folder / f"{number}.png", number)
        right, wrong, other = f"{100 + number}", f"{300 + number}", f"{500 + number}"
        image, text, answer = (
            (right, right, right),
            (right, wrong, right),
            (wrong, right, right),
            (wrong, other, right),
            (right, wrong, ""),
        )[number % 5]
        lines.append(
            {
                "question": f"What is the value of crop {number}?",
                "passages": [f"Crop {number} is {text}.", "Rye was not counted."],
                "images": [f"{number}.png"],
                "image_answer": image,
                "text_answer": text,
                **({"answer": answer} if answer else {}),
            }
        )
    return _build("retrieval", [("log", write_log(folder / "log.jsonl", lines))], out)


def _k_passages(workspace: Workspace, folder: Path, out: Path) -> Build:
    base = every_outcome_build(workspace, "cmc-bench")
    design = PassageDesign((1, 2, 5), (0, 1, 3), ("first", "last"), (0, 1), (0, 40))
    return build_design(base, Examples(base), design, out, limit=10)


def _plain(name: str, workspace: Workspace, folder: Path, out: Path) -> Build:
    return _build(name, [("published", write_rows_of(name, folder, 80))], out)


_BUILDS: dict[str, Callable[[Workspace, Path, Path], Build]] = {
    "cmc-bench": _cmc,
    "clash": _clash,
    "mmkc-bench": _mmkc,
    "pope": _pope,
    "okvqa": _okvqa,
    "gqa": _gqa,
    "crosscheck-bench": _crosscheck,
    "contra4": _contra4,
    "retrieval": _retrieval,
    "k-passages": _k_passages,
    **{name: partial(_plain, name) for name in DATA_SETS},
}
