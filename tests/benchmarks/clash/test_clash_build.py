"""CLASH's build and its instances: four of a sample, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.clash import Clash
from benchmarks.clash.clash_constants import CONDITIONS, CONFLICT_OPTION, LETTERS
from benchmarks.clash.clash_instances import instances, option_order
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.errors import SourceError, SpecError
from benchmarks.vocabulary import SHOWN_TEXT, Instance, Media, Text
from tests.support.data.clash import CLASH_DATA, ROOT, own_folder, own_sample, published_folder, published_row

real = pytest.mark.skipif(not CLASH_DATA.exists(), reason="the real rows are not here")

SAMPLE = ClashSample(
    image_id="1",
    image=Media("0" * 64, ".jpg"),
    original_caption="A white cat. ",
    conflicting_caption="A black cat.",
    question="What color is the cat?",
    change_type="attribute",
    image_only="White",
    text_only="Black",
    distractor="Orange",
    changed_original="white",
    changed_conflicting="black",
    category="colors",
    source="published",
    published_category="colors",
)


def _build(out: Path, *sources: tuple[str, Path], seed: int = 0, per_stratum: int = 250) -> Build:
    options = BuildOptions(seed=seed, per_stratum=per_stratum)
    return Clash().build([(name, str(place)) for name, place in sources], out, options)


def _files(build: Build) -> dict[str, str]:
    files = (path for path in build.path.rglob("*") if path.is_file())
    return {p.relative_to(build.path).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def _text(instance: Instance) -> str:
    *_, part = instance.parts
    assert isinstance(part, Text)
    return part.text


# --- instances ---------------------------------------------------------------------------------------


def test_sample_yields_four_instances_in_order() -> None:
    four = list(instances(SAMPLE, "official", 0))
    assert [i.condition for i in four] == list(CONDITIONS)
    assert [i.id for i in four] == [f"{SAMPLE.id}/{c}" for c in CONDITIONS]
    assert {i.group for i in four} == {SAMPLE.id}
    assert all(i.strata == {"change": "attribute", "source": "published", "category": "colors"} for i in four)
    assert all(i.parts[0] == SAMPLE.image and len(i.parts) == 2 for i in four)
    answers = {"image": ("White",), "text": ("Black",), "distractor": ("Orange",), "conflict": (CONFLICT_OPTION,)}
    assert four[2].references == answers
    assert four[3].references == {**answers, SHOWN_TEXT: ("White",)}
    assert SHOWN_TEXT not in four[0].references
    for instance in four[:2]:
        references = dict(instance.references)
        if instance.condition == "mc-original":
            assert references.pop(SHOWN_TEXT) == ("White",)
            assert references.pop("shown text letter") == references["image letter"]
        letters = {role: references.pop(f"{role} letter") for role in answers}
        assert references == answers
        assert sorted(letters.values()) == [(letter,) for letter in LETTERS]
        options = [f"({letter}) {answers[role][0]}" for role, (letter,) in sorted(letters.items(), key=lambda i: i[1])]
        assert _text(instance).splitlines()[-4:] == options


def test_official_prompt_matches_the_official_code() -> None:
    conflicting, original = list(instances(SAMPLE, "official", 0))[2:]
    assert _text(conflicting) == (
        "You are given an image and a textual description of the image.\n"
        "Use *both* the visual and textual information to answer the question below as accurately as possible.\n"
        "Only answer if your response can be clearly supported by both sources.\n"
        "If the image and the description contradict each other, or if one is missing key information,\n"
        'output "Conflicting information – cannot answer". Otherwise, provide the answer (less than 15 words). \n'
        "A black cat.\n"
        "What color is the cat?"
    )
    assert _text(original) == _text(conflicting).replace("A black cat.", "A white cat. ")
    multiple_choice, *_ = instances(SAMPLE, "official", 0)
    assert _text(multiple_choice).startswith(
        "You are given an image and a textual description of the image.\n"
        "Use *both* the visual and textual information to answer the multiple choice question below as accurately as "
        "possible.\n"
        "Choose the option that is best supported by *both* sources.\n"
        "If the image and the description contradict each other, or if one is missing key information, select the option "
        "“Conflicting information – cannot answer.”\n"
        "Answer only with the letter corresponding to your choice in parenthesis: (A), (B), (C) or (D).\n"
        "Do not include any other text.\n"
        "A black cat.\n"
        "What color is the cat?\n(A) "
    )


def test_paper_prompt_has_its_own_wording_and_the_same_format() -> None:
    for official, paper in zip(instances(SAMPLE, "official", 0), instances(SAMPLE, "paper", 0), strict=True):
        assert official.id == paper.id
        assert official.references == paper.references
        end = _text(official).index(SAMPLE.question)
        assert _text(paper).endswith(_text(official)[end:])
        assert "*both*" in _text(official)
        assert "*" not in _text(paper)


def test_option_order_depends_on_the_seed_not_the_caption() -> None:
    conflicting, original, *_ = instances(SAMPLE, "official", 3)
    letters = [
        {key: i.references[key] for key in i.references if key.endswith(" letter")} for i in (conflicting, original)
    ]
    assert letters[0].items() < letters[1].items()
    assert set(letters[1]) - set(letters[0]) == {f"{SHOWN_TEXT} letter"}
    orders = {option_order(SAMPLE.id, seed) for seed in range(200)}
    assert len(orders) == 24


def test_roles_are_balanced_over_letters() -> None:
    orders = [option_order(f"clash-{n}", 0) for n in range(4_000)]
    for place in range(4):
        for count in Counter(order[place] for order in orders).values():
            assert abs(count - 1_000) < 5 * (4_000 * 0.25 * 0.75) ** 0.5


def test_multi_category_and_spatial_samples_have_strata() -> None:
    several = replace(SAMPLE, category="transportation+sports")
    spatial = replace(SAMPLE, category="", change_type="spatial", relation="left-right")
    assert next(instances(several, "official", 0)).strata["category"] == "several"
    assert next(instances(spatial, "official", 0)).strata == {
        "change": "spatial",
        "source": "published",
        "relation": "left-right",
    }


# --- samples -----------------------------------------------------------------------------------------


@given(st.builds(ClashSample, image=st.none() | st.builds(Media, st.text(), st.text())))
def test_a_sample_goes_through_json_unchanged(sample: ClashSample) -> None:
    assert ClashSample.from_row(json.loads(json.dumps(sample.to_row()))) == sample


def test_id_depends_on_every_field_of_the_question() -> None:
    fields = ("image_id", "original_caption", "conflicting_caption", "question", "image_only", "text_only")
    ids = [SAMPLE.id, *(ClashSample.from_row({**SAMPLE.to_row(), name: "other"}).id for name in fields)]
    assert len(set(ids)) == len(ids)
    assert replace(SAMPLE, category="other", source="rows", image=None).id == SAMPLE.id


# --- builds ------------------------------------------------------------------------------------------


def test_build_of_two_sources_counts_samples_and_skipped_rows(tmp_path: Path) -> None:
    rows = [published_row(1), published_row(1), published_row(2), published_row(10**13), {"image_id": 3}]
    folder = published_folder(tmp_path / "published", rows)
    (folder / "train2017" / f"{2:012d}.jpg").write_bytes(b"\xff\xd8\xff not whole")
    own = own_folder(tmp_path / "own", [own_sample(1), own_sample(2, relation="above-below")])
    build = _build(tmp_path / "out", ("published", folder), ("rows", own))
    manifest = build.manifest
    assert (manifest["samples"], manifest["instances"], manifest["media"]) == (3, 3, 3)
    assert manifest["change_types"] == {"attribute": 1, "spatial": 2}
    assert manifest["categories"] == {"attribute": {"colors": 1}}
    assert manifest["relations"] == {"left-right": 1, "above-below": 1}
    assert manifest["sources"]["published"]["skipped"] == {
        "repeated": 1,
        "the image is truncated or damaged; replace the file": 1,
        "the image id is not a COCO image id, a whole number": 1,
        "the row has no original caption": 1,
    }
    assert manifest["sources"]["rows"]["samples"] == 2
    skipped = [json.loads(line) for line in (build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert [s["row"] for s in skipped] == [f"synthetic_captions_test_filtered.json:{n}" for n in (2, 3, 4, 5)]
    instances = list(Clash().instances(build, "official"))
    assert len(instances) == 12
    assert all(build.media_path(i.parts[0]).is_file() for i in instances if isinstance(i.parts[0], Media))


def test_per_stratum_target_does_not_limit_published_samples(tmp_path: Path) -> None:
    folder = published_folder(tmp_path / "p", [published_row(n) for n in range(5)])
    small, large = (_build(tmp_path / str(n), ("published", folder), per_stratum=n) for n in (1, 250))
    assert small.manifest["samples"] == 5
    assert _files(small) == _files(large)


def test_build_without_samples_reports_the_reason(tmp_path: Path) -> None:
    folder = published_folder(tmp_path / "p", [published_row(1)])
    (folder / "train2017" / f"{1:012d}.jpg").unlink()
    with pytest.raises(SourceError, match=r"no usable sample \(once: the image is missing"):
        _build(tmp_path / "out", ("published", folder))
    assert not (tmp_path / "out").exists()


def test_other_benchmarks_build_and_unknown_prompt_set_are_refused(tmp_path: Path) -> None:
    build = _build(tmp_path / "out", ("rows", own_folder(tmp_path / "own", [own_sample(1)])))
    with pytest.raises(SpecError, match="did you mean 'official'"):
        Clash().instances(build, "oficial")
    other = Build(build.path, {**build.manifest, "benchmark": "cmc-bench"})
    with pytest.raises(SourceError, match="is a build of cmc-bench"):
        Clash().instances(other, "official")


@pytest.mark.parametrize(("source", "module"), [("coco", "clash_construction"), ("spatial", "spatial_subset")])
def test_build_contains_constructed_samples_and_rejections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, module: str
) -> None:
    def construct(folder: Path, writer: BuildWriter, options: BuildOptions) -> Iterator[ClashSample]:
        image = writer.add_media((folder / "1.png").read_bytes(), ".png")
        writer.add_skipped("coco", "image 5, caption 1", "distractor: it is in a caption: {reply}")
        yield replace(SAMPLE, image=image, category="", source="?", published_category=None)

    fake = ModuleType(f"benchmarks.clash.construction.{module}")
    fake.__dict__["construct" if source == "coco" else "construct_spatial"] = construct
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    build = _build(tmp_path / "out", (source, own_folder(tmp_path / "in", [])))
    (row,) = build.rows()
    assert (row["category"], row["source"]) == ("colors", source)
    assert build.manifest["sources"][source]["samples"] == 1
    assert '"row":"image 5, caption 1"' in (build.path / "skipped.jsonl").read_text("utf-8")
    assert build.manifest["options"] == {"per_stratum": 250}
    assert build.manifest["models"] == {"writer": None, "checker": None}


@real
@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    sources = [("published", str(CLASH_DATA)), ("sugar-crepe", str(CLASH_DATA / "sugar_crepe"))]
    here = Clash().build(sources, tmp_path / "here", BuildOptions(seed=5))
    code = (
        "import json, sys; from pathlib import Path; from benchmarks.registry import get_benchmark\n"
        "from benchmarks.build import BuildOptions\n"
        "get_benchmark('clash').build(json.loads(sys.argv[1]), Path(sys.argv[2]), BuildOptions(seed=5))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    again = tmp_path / "again"
    command = [sys.executable, "-c", code, json.dumps(sources), str(again)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    assert _files(Build.open(again)) == _files(here)
    assert here.manifest["sources"]["published"]["samples"] == 3
    assert here.manifest["sources"]["sugar-crepe"]["samples"] == 163
    assert str(CLASH_DATA) not in (here.path / "skipped.jsonl").read_text("utf-8")
    assert str(CLASH_DATA) not in (here.path / "manifest.json").read_text("utf-8")


def test_describing_the_benchmark_imports_nothing_heavy() -> None:
    code = "import sys, benchmarks.clash; print([m for m in ('PIL', 'numpy', 'datasets', 'mlx') if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_what_is_correct() -> None:
    correct = {c: [label for label in Clash.labels if Clash().correct(c, label)] for c in Clash().full_conditions}
    assert correct == {
        "mc-conflicting": ["CONFLICT"],
        "mc-original": ["IMAGE"],
        "open-conflicting": ["CONFLICT"],
        "open-original": ["IMAGE"],
    }
