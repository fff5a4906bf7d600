"""Parity of two runs: every seeded fault is found at its stage and named, with a real model and real pictures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path

import pytest

from app.json_output.json_envelope import plain
from app.json_output.parity_json import pair_json
from app.parity.model_probing import ProbeOptions
from app.parity.parity_report import ParityReport, compare_runs, store_probes
from app.parity.parity_tables import stages_table
from app.store.workspace import Workspace
from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Media, Text
from mlx_backends.base import Backend
from mlx_backends.mlx import prompt_reading, vlm_batch
from mlx_backends.mlx.batched_answers import BatchedAnswers
from mlx_backends.mlx.patches import qwen3_vl_deepstack
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.support.command import ROOT
from tests.support.fp32 import in_fp32
from tests.support.parity import finished_run, in_this_process
from tests.support.tiny_qwen3 import build_tiny_vlm

PROBES = 3
ANSWERS = 6
SYSTEM = "{{- '<|im_start|>system\\nYou read charts with care.<|im_end|>\\n' }}"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Workspace:
    """Return a workspace with the demo's charts and the tiny model's answers about some of them, the run ``right``."""
    workspace = Workspace(tmp_path_factory.mktemp("parity") / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], workspace.build_folder("cmc-bench"), BuildOptions())
    finished_run(workspace, "right", tiny, first_instances(workspace))
    return workspace


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Qwen3-VL with random weights that computes in fp32."""
    texts = ["How many apples were sold?", "According to the source, the value is 12."]
    return in_fp32(build_tiny_vlm(tmp_path_factory.mktemp("models") / "tiny", texts, quantise=False))


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    in_this_process(monkeypatch)


def first_instances(workspace: Workspace, count: int = ANSWERS) -> list[Instance]:
    """Return ``count`` instances from all parts of the build."""
    build = Build.open(workspace.build_folder("cmc-bench"))
    every = list(get_benchmark("cmc-bench").instances(build, "paper"))
    return every[:: len(every) // count][:count]


def two_pictures(workspace: Workspace) -> list[Instance]:
    """Instances that show another example's chart before their own."""
    shown = [i for i in first_instances(workspace, 60) if any(isinstance(part, Media) for part in i.parts)]
    pictures = {i.id: next(part for part in i.parts if isinstance(part, Media)) for i in shown}
    with_two = []
    for instance in shown[:4]:
        other = next(pictures[i.id] for i in shown if pictures[i.id] != pictures[instance.id])
        with_two.append(
            replace(
                instance,
                parts=(Text("Here is a chart."), other, Text("And the one that is asked about."), *instance.parts),
            )
        )
    return with_two


def with_system(model: Path, folder: Path) -> None:
    """Copy a model with a chat template that writes its own system prompt."""
    shutil.copytree(model, folder)
    path = folder / "tokenizer_config.json"
    template = json.loads(path.read_text())
    path.write_text(json.dumps({**template, "chat_template": SYSTEM + template["chat_template"]}))


def compare(workspace: Workspace, a: str, b: str, probes: int = PROBES) -> ParityReport:
    return compare_runs(
        (workspace.runs_folder / a, workspace.runs_folder / b),
        ProbeOptions(probes, [workspace.build_folder("cmc-bench")]),
    )


def statuses(parity: ParityReport) -> dict[str, str]:
    return {finding.stage: finding.status for finding in parity.findings}


SAME = dict.fromkeys(
    ("asked", "prompt", "tokens", "images", "pixels", "numerics", "batching", "decoding", "judge"), "same"
)


@pytest.mark.slow
def test_a_model_beside_itself_is_the_same_at_every_stage(workspace: Workspace, tiny: Path) -> None:
    finished_run(workspace, "again", tiny, first_instances(workspace))
    parity = compare(workspace, "right", "again")
    assert statuses(parity) == SAME
    same = f"{ANSWERS} of {ANSWERS} answers are the same, token for token; "
    assert parity.verdict.startswith(f"A and B do not differ at any stage. {same}")


@pytest.mark.slow
def test_a_wrong_image_mean_is_named(workspace: Workspace, tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "other-mean")
    settings = tmp_path / "other-mean" / "preprocessor_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "image_mean": [0.25, 0.3, 0.4]}))
    finished_run(workspace, "other-mean", tmp_path / "other-mean", first_instances(workspace))
    parity = compare(workspace, "right", "other-mean")
    assert parity.verdict.startswith(
        "A and B first differ at the processed pixels: another image mean (B = A + (0.5, 0.4, 0.2))."
    ), parity.verdict
    assert "They also differ" not in parity.verdict, "what the weights make of other pixels is no cause of its own"
    assert statuses(parity) == {**SAME, "pixels": "differs", "numerics": "differs"}


@pytest.mark.slow
def test_a_dropped_system_prompt_is_named(workspace: Workspace, tiny: Path, tmp_path: Path) -> None:
    with_system(tiny, tmp_path / "with-system")
    finished_run(workspace, "with-system", tmp_path / "with-system", first_instances(workspace))
    parity = compare(workspace, "with-system", "right")
    assert parity.verdict.startswith(
        "A and B first differ at the prompt after the chat template: the system prompt is missing in B "
        "(“You read charts with care.”)."
    ), parity.verdict
    seen = statuses(parity)
    assert [stage for stage, word in seen.items() if word == "differs"] == ["prompt", "tokens", "numerics"]
    assert seen["images"] == seen["pixels"] == seen["batching"] == "same"
    blind = compare(workspace, "with-system", "right", probes=0)
    assert statuses(blind)["tokens"] == "differs", "two runs alone tell that their prompts are of other lengths"
    assert "tokens shorter" in blind.verdict


def test_a_swapped_image_order_is_named(workspace: Workspace, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In what is asked, and in an engine that is asked the same."""
    right = two_pictures(workspace)
    finished_run(workspace, "two", tiny, right)
    swapped = []
    for instance in right:
        pictures = [part for part in instance.parts if isinstance(part, Media)]
        turned = iter(pictures[::-1])
        parts = tuple(next(turned) if isinstance(part, Media) else part for part in instance.parts)
        swapped.append(replace(instance, parts=parts))
    finished_run(workspace, "asked-swapped", tiny, swapped)
    parity = compare(workspace, "two", "asked-swapped")
    assert parity.verdict.startswith(
        "A and B first differ at the request: the images are in another order: image 1 in A is image 2 in B."
    ), parity.verdict

    from mlx_backends.mlx.mlx_preprocess import Preprocessor

    opened = Preprocessor._keyed_images
    monkeypatch.setattr(Preprocessor, "_keyed_images", lambda *arguments: opened(*arguments)[::-1])
    finished_run(workspace, "engine-swapped", tiny, right)
    compare(workspace, "engine-swapped", "two")  # looks at the faulty engine, and keeps that
    monkeypatch.undo()
    parity = compare(workspace, "two", "engine-swapped")
    assert parity.verdict.startswith(
        "A and B first differ at the input images: the images are in another order: the first in A is the second in B."
    ), parity.verdict
    assert statuses(parity)["pixels"] == "same", "the same pictures, each prepared as it should be"


@pytest.mark.slow
def test_the_known_batching_fault_is_named(workspace: Workspace, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        prompt_reading, "MAX_SUFFIX_TOKENS", 10_000
    )  # whole prompts are read together, as mlx-vlm's server does
    monkeypatch.setattr(vlm_batch, "MAX_PADDING_FACTOR", 100)
    begin = BatchedAnswers._start_prepared

    def begin_prepared(self: BatchedAnswers) -> Iterator[Generation]:
        wait(
            [prepared for _, prepared in self._preparing]
        )  # else a busy machine decides which of them are read together
        return begin(self)

    monkeypatch.setattr(BatchedAnswers, "_start_prepared", begin_prepared)
    finished_run(workspace, "alone", tiny, first_instances(workspace))

    def together(backend: Backend) -> None:
        assert isinstance(backend, VLMBackend)
        backend._start_batched(4, share=False)

    finished_run(workspace, "repaired", tiny, first_instances(workspace), before=together)
    assert statuses(compare(workspace, "alone", "repaired")) == SAME
    _unrepaired(monkeypatch)
    finished_run(workspace, "unrepaired", tiny, first_instances(workspace), before=together)
    parity = compare(workspace, "alone", "unrepaired")
    assert statuses(parity) == {**SAME, "batching": "differs"}
    assert "answers of B's run are not those that B gives sequentially (batching)." in parity.verdict
    assert "A's run" not in parity.verdict
    assert parity.answers.same < ANSWERS


def _unrepaired(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_vlm.generate import ar

    merge = ar._merge_prefill_prompt_kwargs
    monkeypatch.setattr(ar, "_merge_prefill_prompt_kwargs", getattr(merge, "__wrapped__", merge))
    monkeypatch.setattr(qwen3_vl_deepstack, "AFFECTED_VERSIONS", ())


def test_what_a_model_makes_of_its_prompts_goes_with_the_run_to_where_the_model_is_not(
    workspace: Workspace, tiny: Path, tmp_path: Path
) -> None:
    """A run of another machine: its folder was copied with what was looked at there, its model and its build were not."""
    gone = tmp_path / "gone"
    with_system(tiny, gone)
    there = Workspace(tmp_path / "there")
    shutil.copytree(workspace.path / "benchmarks", there.path / "benchmarks")
    folder = finished_run(there, "elsewhere", gone, first_instances(workspace))
    look = ProbeOptions(PROBES, [there.build_folder("cmc-bench")])
    assert f"{PROBES} requests of elsewhere were probed" in store_probes(folder, look)
    shutil.copytree(folder, workspace.runs_folder / "from-there")
    shutil.rmtree(gone)
    shutil.rmtree(there.path)
    parity = compare(workspace, "from-there", "right", probes=16)
    assert len(parity.probed) == PROBES
    assert "the system prompt is missing in B" in parity.verdict
    assert parity.numerics is not None
    assert statuses(parity)["pixels"] == "same"


@pytest.mark.slow
def test_requests_whose_pictures_are_gone_are_counted_and_looked_at_again_once_they_are_back(
    workspace: Workspace, tiny: Path, tmp_path: Path
) -> None:
    replaced = Workspace(tmp_path / "replaced")
    shutil.copytree(workspace.path / "benchmarks", replaced.path / "benchmarks")
    for name in ("one", "two"):
        finished_run(replaced, name, tiny, first_instances(workspace))
    media = replaced.build_folder("cmc-bench") / "media"
    media.rename(tmp_path / "away")
    media.mkdir()
    first, *others = pictures_of(replaced)
    for name in first:
        shutil.copy(tmp_path / "away" / name, media / name)
    gone = sum(not set(names) <= set(first) for names in others)
    assert gone
    parity = compare(replaced, "one", "two", probes=ANSWERS)
    assert len(parity.probed) == ANSWERS - gone
    message = f"{gone} of {ANSWERS} left out: their pictures are no longer in the build"
    assert parity.not_probed == (message,)
    assert pair_json(parity).not_probed == (message,)
    assert message in stages_table(parity).notes
    shutil.copytree(tmp_path / "away", media, dirs_exist_ok=True)
    parity = compare(replaced, "one", "two", probes=ANSWERS)
    assert (len(parity.probed), parity.not_probed) == (ANSWERS, ())


def pictures_of(workspace: Workspace) -> list[list[str]]:
    """Return the names of the pictures of each request."""
    return [
        [part.name for part in instance.parts if isinstance(part, Media)] for instance in first_instances(workspace)
    ]


def test_a_run_whose_model_is_not_here_is_compared_by_what_it_answered(
    workspace: Workspace, tiny: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny, tmp_path / "gone")
    finished_run(workspace, "unknown", tmp_path / "gone", first_instances(workspace))
    shutil.rmtree(tmp_path / "gone")
    parity = compare(workspace, "right", "unknown")
    assert parity.not_probed
    assert "gone' is neither a folder nor a Hub id" in parity.not_probed[0]
    assert parity.verdict.startswith("Nothing that was compared differs; not compared: the prompt's tokens")
    assert str(tmp_path) not in json.dumps(plain(pair_json(parity)))
