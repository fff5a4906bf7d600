"""Simulated studies at the level of commands: builds, runs and what the commands print."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Literal, cast

import numpy as np
from PIL import Image

from app.commands.results.recommend_command import RecommendArguments
from app.commands.results.recommend_command import recommend as print_recommendation
from app.compare.comparison_headline import headlines
from app.compare.comparison_tables import compare
from app.compare.decision.target_shares import ALPHA
from app.engine.run_plan import create_run
from app.json_output.tables_json import EstimateJson, table_json
from app.run_spec import BatchSpec
from app.store.run_references import run_folder
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Media, Record, Verdict
from docs.simulated_readers import (
    ALIGNED,
    ANSWERED,
    BOTH,
    CUT_OFF,
    DECIDING,
    EMPTY,
    FAILED,
    IMAGE,
    LABELS,
    NEITHER,
    PROMPTS,
    RIGHT,
    TEXT,
    UNDECIDED,
    Codes,
    Random,
)
from docs.simulated_runs import POLICIES, Layout, World, draw
from docs.study_claims import Claims, Compared, sign
from docs.study_kinds import Study
from judges.base import FunctionJudge
from judges.judge_registry import get_judge

ROOT = Path(__file__).resolve().parents[1]

BUILDS, BUILD_PAGES, PER_PAGE = 4, 20, 3
APART = 25
"""Of so many studies, one runs `rashomon recommend` in a process of its own as well."""


class Commands:
    """The level of commands: builds from a CSV with a column of documents, and runs whose answers are scripted and judged.

    Runs are written as the engine writes them, and the functions behind `rashomon recommend` and `compare` print what is read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._opened = folder, 0
        self._benchmark, judge = get_benchmark("cmc-bench"), get_judge("match")
        assert isinstance(judge, FunctionJudge)
        self._judge = judge
        self._verdicts: dict[tuple[str, str, str], Verdict] = {}
        self._builds = [self._build(number) for number in range(BUILDS)]
        self.in_process = True

    def layout(self, random: Random) -> Layout:
        """Return the pages of a build."""
        return self._builds[random.integers(BUILDS)][1]

    def open(self, random: Random, world: World, policies: bool) -> Study:
        """Write the runs of a study."""
        instances, layout = self._builds[random.integers(BUILDS)]
        drawn = draw(random, layout, world)
        self._opened += 1
        workspace = Workspace(self._folder / f"workspace-{self._opened}")
        workspace.make()
        models = [f"m{model}" for model in range(len(world.readers))]
        for model, name in enumerate(models):
            self._write(workspace, name, f"org/{name}", instances, drawn.outcome[..., model], drawn.fate[..., model])
        floors = [name.removeprefix("policy:") for name in POLICIES if policies]
        for name, label in zip(floors, (IMAGE, TEXT), strict=False):
            outcome = np.full(drawn.outcome.shape[:2], label)
            outcome[:, 4:] = (IMAGE, TEXT)
            outcome[:, ALIGNED] = BOTH
            self._write(workspace, name, f"policy:{name}", instances, outcome, outcome * 0)

        def recommend(rule: str | None, margin: float) -> Claims:
            arguments = RecommendArguments(margin=margin, trust=rule, as_json=True)
            text = _printed(lambda: print_recommendation(workspace, [*models, *floors], arguments))
            if not self.in_process:
                more = ["--trust", rule] if rule else []
                assert text == self._run(
                    workspace, "recommend", *models, *floors, "--margin", str(margin), *more, "--json"
                )
            result = json.loads(text)["result"]
            return Claims.of(
                result["holds"], result["advice"], result["behaviour"], result["unknown"], result["by_rule"]
            )

        return Study(recommend, lambda: _compared(workspace, models))

    def clear(self) -> None:
        """Remove the runs of the studies so far."""
        for folder in self._folder.glob("workspace-*"):
            shutil.rmtree(folder)

    def _build(self, number: int) -> tuple[list[Instance], Layout]:
        """Build the pages of one table; return the instances by question and prompt, and their layout."""
        random, source = np.random.default_rng((13, number)), self._folder / f"rows-{number}"
        source.mkdir(parents=True)
        rows = BUILD_PAGES * PER_PAGE
        values = random.permutation([round(1013 * 1.019**power) for power in range(2 * rows)]).tolist()
        with (source / "rows.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["image", "question", "answer", "document", "conflict"])
            for row in range(rows):
                Image.new("RGB", (8, 8), (number, row, 99)).save(source / f"{row}.png")
                question = "How many crates were sold?"
                writer.writerow([f"{row}.png", question, values[row], f"page {row // PER_PAGE}", values[rows + row]])
        build = self._benchmark.build([("rows", str(source / "rows.csv"))], source / "build", BuildOptions())
        by_id = {instance.id: instance for instance in self._benchmark.instances(build, "paper")}
        examples = list(dict.fromkeys(instance.group for instance in by_id.values()))
        ends = [*(prompt.condition for prompt in PROMPTS[:DECIDING]), "image-only/right", "text-only/right"]
        instances = [by_id[f"{example}/{end}"] for example in examples for end in ends]
        pages = [int(instance.strata["document"].removeprefix("page ")) for instance in instances]
        page_of_picture = {
            _picture(instance): pages[place] for place, instance in enumerate(instances) if place % len(ends) == 0
        }
        lenders = [page_of_picture[_picture(instance)] for instance in instances[3 :: len(ends)]]
        return instances, Layout(np.array(pages[:: len(ends)]), np.array(lenders))

    def _write(
        self, workspace: Workspace, name: str, model: str, instances: Sequence[Instance], outcome: Codes, fate: Codes
    ) -> None:
        (spec,) = BatchSpec(benchmark="cmc-bench", model=(model,), name=name).runs()
        identity = {**spec.identity(), "data digest": "d" * 64, "engine": "scripted"}

        def fill(store: RunStore) -> None:
            store.use_engine({"engine": "scripted", "model": model})
            answers = []
            for place, (instance, code, what) in enumerate(zip(instances, outcome.flat, fate.flat, strict=True)):
                text, reason = scripted_answer(instance, int(code), int(what))
                error = "the server closed the connection" if what == FAILED else None
                generation = Generation(f"{instance.id}#0", text, reason, (1, 2), 30, 2, 0.1, 0.5, 10**9, error)
                verdicts = () if error else (self._verdict(instance, generation, int(code), int(what)),)
                answers.append(NewAnswer(place, instance.condition, 0, "digest", generation, True, verdicts))
            store.commit(answers)
            store.set_meta("state", {"state": "done"})

        create_run(workspace, spec, workspace.runs_folder / name, identity, instances, data=None, fill=fill)

    def _verdict(self, instance: Instance, generation: Generation, code: int, what: int) -> Verdict:
        """Return the verdict of ``match``, which must be the label that the answer was written for."""
        key = instance.id, generation.text, generation.finish_reason
        if key not in self._verdicts:
            verdict = self._verdicts[key] = self._judge.judge(Record(instance, (generation,)))
            status = {ANSWERED: "labelled", EMPTY: "unparsed"}.get(what, "undecided")
            label = LABELS[NEITHER if code == RIGHT else code] if what == ANSWERED else None
            assert (verdict.status, verdict.label) == (status, label), (instance, generation.text, verdict)
            assert what != ANSWERED or (code == RIGHT) == (verdict.behaviour == "right"), (instance, generation.text)
        return self._verdicts[key]

    def _run(self, workspace: Workspace, *words: str) -> str:
        command = [sys.executable, "-m", "app.main", "--workspace", str(workspace.path), *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def scripted_answer(instance: Instance, code: int, what: int) -> tuple[str, Literal["stop", "length", "error"]]:
    """Return an answer that ``match`` labels as it should, with its finish reason."""
    image, text, right = ((instance.references.get(name) or ("",))[0] for name in ("image", "text", "right"))
    if what in (EMPTY, FAILED):
        return "", "error" if what == FAILED else "stop"
    if what == CUT_OFF:
        return "The value that is asked for is", "length"
    if what == UNDECIDED:
        return f"Not {image or text}{'.' * (1 + code)}", "stop"  # equal answers have equal labels
    both = image if image == text else f"Both {image} and {text}."
    flags = "The image and the text disagree, so I cannot tell."
    return (image, text, both, "77777", flags, right)[code], "stop"


def _picture(instance: Instance) -> str:
    return (
        next(part.sha256 for part in instance.parts if isinstance(part, Media))
        if instance.condition != "text-only"
        else ""
    )


def _printed(command: Callable[[], None]) -> str:
    with redirect_stdout(io.StringIO()) as output:
        command()
    return output.getvalue()


_HEADLINE = re.compile(
    r"(\S+) is right on \S+ of the \d+ answers that count in both, .*?: (\S+) points \([^)]*\)(, not significant)?\."
)


def _compared(workspace: Workspace, models: Sequence[str]) -> Compared:
    """Return the claims of ``compare``: its first lines, and the table of differences of its JSON."""
    comparison = compare([run_folder(workspace, name) for name in models])
    claims = [claim for line in headlines(comparison) for claim in _HEADLINE.findall(line)]
    assert len(claims) == len(models) - 1, headlines(comparison)
    accuracy = {run: 0 if insignificant else sign(float(points)) for run, points, insignificant in claims}
    (table,) = (table_json(table) for table in comparison.tables if table.name == "differences")
    metrics = {}
    for row in table.rows:
        run, _, metric = row.label.partition(" / ")
        value, p = (cast(EstimateJson, row.cells[key]).value for key in ("difference", "p_holm"))
        metrics[run, metric] = sign(value) if p is not None and p <= ALPHA else 0
    return Compared(accuracy, metrics)
