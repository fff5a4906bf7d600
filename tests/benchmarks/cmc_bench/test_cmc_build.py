"""CMC-Bench's construction: every rule over every instance, the same bytes every time."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.cmc_bench import CMCBench
from benchmarks.cmc_bench.construction.cmc_candidates import Candidate, candidates
from benchmarks.cmc_bench.construction.cmc_construction import construct
from benchmarks.cmc_bench.sources import read_source
from benchmarks.errors import BusyError, SourceError, SpecError
from benchmarks.media import load_image, pixel_digest
from benchmarks.registry import get_benchmark
from benchmarks.text.normal_form import coarse_type
from benchmarks.values import compare
from benchmarks.vocabulary import Instance
from tests.support.data.small import (
    REAL_DATA,
    mmmu_rows,
    original_chartqa,
    own_rows,
    picture,
    write_lines,
    write_picture,
)

ROOT = Path(__file__).resolve().parents[3]
FOUR = ("aligned", "image-correct", "text-correct", "both-wrong")


def _build(out: Path, *sources: tuple[str, Path], seed: int = 0, per_stratum: int = 250) -> Build:
    options = BuildOptions(seed=seed, per_stratum=per_stratum)
    return CMCBench().build([(name, str(place)) for name, place in sources], out, options)


def _groups(build: Build) -> dict[str, dict[str, dict[str, Any]]]:
    groups: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in build.rows():
        groups[row["group"]][row["id"].removeprefix(row["group"] + "/")] = row
    return groups


def _files(build: Build) -> dict[str, str]:
    files = (path for path in build.path.rglob("*") if path.is_file())
    return {p.relative_to(build.path).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def differ(first: str, second: str, question: str = "", tolerance: float = 0.0) -> bool:
    return compare(first, second, question, tolerance).verdict == "different"


def _check_every_rule(build: Build) -> None:
    """Check every rule of benchmarks.md and section 3.2 on every example."""
    pixels: dict[str, str] = {}
    for media in (build.path / "media").iterdir():
        assert hashlib.sha256(media.read_bytes()).hexdigest() == media.stem
        pixels[media.stem] = pixel_digest(load_image(media))
    names: list[str] = []
    for group, rows in _groups(build).items():
        names += [row["id"] for row in rows.values()]
        assert set(rows) == {*FOUR, *(f"{s}-only/{w}" for s in ("image", "text") for w in ("right", "wrong"))}
        aligned, img, txt, both = (rows[condition] for condition in FOUR)
        gold, value, other = aligned["references"]["image"], img["references"]["text"], txt["references"]["image"]
        assert aligned["references"] == {"image": gold, "text": gold}
        assert img["references"] == {"image": gold, "text": value}
        assert txt["references"] == {"image": other, "text": gold}
        assert both["references"] == {"image": other, "text": value, "right": gold}
        assert differ(gold, value, aligned["question"])
        assert differ(gold, other)
        assert differ(value, other)
        assert not any("<image" in answer for answer in (gold, value, other))
        right, wrong = aligned["image"], txt["image"]
        assert (img["image"], both["image"]) == (right, wrong)
        assert pixels[right["sha256"]] != pixels[wrong["sha256"]]
        assert aligned["passage"] == txt["passage"] != img["passage"] == both["passage"]
        kind = aligned["strata"]["type"]
        assert group.startswith(f"{kind}-")
        if kind in ("factual", "temporal"):
            assert coarse_type(value) == coarse_type(gold)
            assert (kind == "temporal") == (coarse_type(gold) == "year")
            if kind == "factual" and aligned["strata"]["source"] != "rows":
                assert differ(value, gold, aligned["question"], 0.05), "right by ChartQA's relaxed accuracy"
            assert (kind == "temporal") == (coarse_type(other) == "year")
        singles = {
            "image-only/right": (right, None, {"image": gold}, "image"),
            "image-only/wrong": (wrong, None, {"image": other, "right": gold}, "none"),
            "text-only/right": (None, aligned["passage"], {"text": gold}, "text"),
            "text-only/wrong": (None, img["passage"], {"text": value, "right": gold}, "none"),
        }
        for name, (image, passage, references, correct) in singles.items():
            row = rows[name]
            assert (row["image"], row["passage"], row["references"]) == (image, passage, references)
            assert (row["strata"]["correct"], row["condition"]) == (correct, name.split("/")[0])
        assert [rows[c]["strata"]["correct"] for c in FOUR] == ["both", "image", "text", "none"]
        assert len({row["question"] for row in rows.values()}) == 1
    assert len(set(names)) == len(names) == build.manifest["instances"]
    checked = sum(row["strata"]["manual_check"] == "yes" for row in build.rows())
    assert checked == build.manifest["manual_check"] == round(0.2 * len(names))


# --- the real rows -----------------------------------------------------------------------------------

real = pytest.mark.skipif(not REAL_DATA.exists(), reason="the real rows are not here")


@pytest.fixture(scope="module")
def real_build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return _build(tmp_path_factory.mktemp("real") / "build", ("", REAL_DATA))


@real
@pytest.mark.slow
def test_real_rows_make_these_examples(real_build: Build) -> None:
    manifest = real_build.manifest
    assert manifest["examples"] == {"factual": 250, "temporal": 33, "entity": 75, "granularity": 15}
    assert manifest["shortfalls"] == {"temporal": 217, "entity": 175, "granularity": 235}
    assert manifest["conditions"] == dict.fromkeys(FOUR, 373) | {"image-only": 746, "text-only": 746}
    assert manifest["sources"]["chartqa"]["skipped"] == {
        "repeated: another row has this picture, question and answer": 618,
        "the image is missing; put the file in its place": 1756,
    }
    assert manifest["sources"]["misleading_chartqa"]["skipped"] == {"the folder is not named after a source": 1}
    skipped = [json.loads(line) for line in (real_build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert len(skipped) == sum(n for s in manifest["sources"].values() for n in s["skipped"].values())
    assert str(REAL_DATA) not in (real_build.path / "skipped.jsonl").read_text("utf-8")


@real
@pytest.mark.slow
def test_real_examples_obey_every_rule(real_build: Build) -> None:
    _check_every_rule(real_build)


@real
@pytest.mark.slow
def test_real_years_contradict_within_ten_years_where_the_pool_has_one(real_build: Build) -> None:
    rows = [rows for rows in _groups(real_build).values() if rows["aligned"]["strata"]["type"] == "temporal"]
    golds = {rows["aligned"]["references"]["image"] for rows in rows}
    for row in rows:
        gold, value = row["image-correct"]["references"]["image"], row["image-correct"]["references"]["text"]
        if any(gold != year and abs(int(gold) - int(year)) <= 10 for year in golds):
            assert abs(int(gold) - int(value)) <= 10


@real
@pytest.mark.slow
def test_table_1_counts_the_papers_four_conditions_beside_its_values(real_build: Build) -> None:
    with (real_build.path / "table-1.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["statistic"]: (row["value"], row["in the paper"]) for row in csv.DictReader(file)}
    examples = real_build.manifest["examples"]
    total = sum(examples.values())
    assert rows["total examples"] == (str(total), "942")
    assert rows["total instances"] == (str(4 * total), "3768")
    for kind, of_paper in (("factual", "250 / 1000"), ("granularity", "192 / 768")):
        assert rows[f"{kind} examples / instances"] == (f"{examples[kind]} / {4 * examples[kind]}", of_paper)
    assert rows["passage length (mean ± sd, words)"] == ("8.5 ± 1.8", "10.7 ± 5.6")
    sources = [int(rows[f"source: {name} examples"][0]) for name in ("chartqa", "mmmu")]
    assert sum(sources) == total
    assert float(rows["QC sample (share of instances)"][0].rstrip("%")) == pytest.approx(20, abs=1)


@real
@pytest.mark.slow
def test_real_passages_are_about_as_long_as_the_papers(real_build: Build) -> None:
    """10.7 +- 5.6 in the paper, whose MMMU golds are longer: half of its examples, a quarter of these."""
    words = real_build.manifest["passage_words"]
    assert abs(words["mean"] - 10.7) < 5.6
    assert words == {"mean": 8.55, "standard_deviation": pytest.approx(1.78, abs=0.05)}


@real
@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_another_process(real_build: Build, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from benchmarks.registry import get_benchmark\n"
        "from benchmarks.build import BuildOptions\n"
        "get_benchmark('cmc-bench').build([('', sys.argv[1])], Path(sys.argv[2]), BuildOptions(seed=0))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    again = tmp_path / "elsewhere" / "again"
    subprocess.run([sys.executable, "-c", code, str(REAL_DATA), str(again)], cwd=ROOT, env=environment, check=True)
    assert _files(Build.open(again)) == _files(real_build)


@real
@pytest.mark.slow
def test_another_seed_gives_other_examples(real_build: Build) -> None:
    usable = [c for c in candidates(read_source("chartqa", str(REAL_DATA / "chartqa"))) if isinstance(c, Candidate)]
    chosen = [[e.id for e in construct(usable, seed=seed, per_type=250).all] for seed in (0, 1)]
    built = {row["group"] for row in real_build.rows()}
    assert set(chosen[0]) <= built
    assert set(chosen[0]) != set(chosen[1])


# --- small sources -------------------------------------------------------------------------------------


def test_chartqa_and_mmmu_make_all_four_types(tmp_path: Path) -> None:
    sources = ("chartqa", original_chartqa(tmp_path / "c")), ("mmmu", mmmu_rows(tmp_path / "m"))
    build = _build(tmp_path / "out", *sources)
    assert build.manifest["examples"] == {"factual": 12, "temporal": 12, "entity": 4, "granularity": 4}
    _check_every_rule(build)
    assert "time" not in build.manifest
    assert str(tmp_path) not in (build.path / "manifest.json").read_text("utf-8")


def test_examples_do_not_depend_on_source_paths_or_row_order(tmp_path: Path) -> None:
    first = _build(tmp_path / "1", ("rows", own_rows(tmp_path / "a", ["1", "2", "3", "x", "y", "z"])), per_stratum=4)
    lines = (tmp_path / "a" / "rows.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "b" / "rows.jsonl").write_text("\n".join(reversed(lines)), "utf-8")
    second = _build(tmp_path / "2", ("rows", tmp_path / "b"), per_stratum=4)
    assert list(first.rows()) == list(second.rows())
    assert first.digest == second.digest


def test_quotas_apply_and_subjects_fill_shortfalls(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for subject, count in (("Physics", 20), ("Art", 20), ("History", 2)):
        for i in range(count):
            write_picture(tmp_path / f"{subject}{i}.png", len(rows))
            answer = {"options": [f"{subject} {i}", "other"], "answer": "A"}
            rows.append({"image": f"{subject}{i}.png", "question": "?q", "group": subject, **answer})
    write_lines(tmp_path / "rows.jsonl", rows)
    build = _build(tmp_path / "out", ("rows", tmp_path), per_stratum=13)
    subjects = Counter(row["strata"]["subject"] for row in build.rows() if row["condition"] == "aligned")
    assert subjects["History"] == 2
    assert sorted((subjects["Physics"], subjects["Art"])) == [5, 6]
    assert build.manifest["examples"]["entity"] == 13
    assert build.manifest["shortfalls"] == {"factual": 13, "temporal": 13, "granularity": 13}
    assert build.manifest["usable_rows_not_needed"]["entity"] == 29


def test_wrong_image_is_never_the_same_chart(tmp_path: Path) -> None:
    write_picture(tmp_path / "0.png", 0)
    (tmp_path / "1.bmp").write_bytes(picture(0, "BMP"))
    write_picture(tmp_path / "2.png", 2)
    shown = [("0.png", "a"), ("1.bmp", "b"), ("0.png", "c"), ("2.png", "a"), ("2.png", "b"), ("2.png", "c")]
    rows = [{"image": file, "question": f"{q}?", "answer": str(i)} for i, (file, q) in enumerate(shown)]
    write_lines(tmp_path / "rows.jsonl", rows)
    build = _build(tmp_path / "out", ("rows", tmp_path))
    _check_every_rule(build)
    wrong = {r["group"]: r["references"]["image"] for r in build.rows() if r["condition"] == "text-correct"}
    assert sorted(wrong.values()) == ["0", "1", "2", "3", "4", "5"]


def _wrong_pictures(folder: Path, *rows: tuple[int, str, str, str]) -> tuple[Build, dict[str, tuple[int, str]]]:
    """Return a build of rows (picture, question, answer, group), and each answer's wrong picture and what that shows."""
    for number, *_ in rows:
        write_picture(folder / f"{number}.png", number)
    keys = ("question", "answer", "group")
    write_lines(folder / "rows.jsonl", [{"image": f"{n}.png", **dict(zip(keys, r, strict=True))} for n, *r in rows])
    build = _build(folder / "out", ("rows", folder))
    numbers = {pixel_digest(load_image(folder / f"{number}.png")): number for number, *_ in rows}
    wrong = {}
    for example in _groups(build).values():
        if "image-only/wrong" in example:
            row = example["image-only/wrong"]
            pixels = pixel_digest(load_image(build.path / "media" / (row["image"]["sha256"] + row["image"]["suffix"])))
            assert {row["image"]["sha256"]} == {example[c]["image"]["sha256"] for c in example if c in FOUR[2:]}
            wrong[example["aligned"]["references"]["image"]] = numbers[pixels], row["references"]["image"]
    return build, wrong


def test_wrong_picture_of_an_own_row_answers_its_question(tmp_path: Path) -> None:
    rows = [
        (0, "What is the value of kale?", "43", "a"),
        (1, "What is the value of pear?", "80", "a"),
        (2, "What is the value of plum?", "58", "a"),
        (3, "what is the  value of Kale", "61", "b"),
        (2, "What is the value of pear?", "31", "b"),
    ]
    build, wrong = _wrong_pictures(tmp_path, *rows)
    assert wrong == {"43": (3, "61"), "61": (0, "43"), "80": (2, "31"), "31": (1, "80")}
    left_out = build.manifest["conditions_left_out"]
    assert {condition: sum(reasons.values()) for condition, reasons in left_out.items()} == {
        "text-correct": 1,
        "both-wrong": 1,
    }
    assert build.manifest["conditions"] == {
        "aligned": 5,
        "image-correct": 5,
        "text-correct": 4,
        "both-wrong": 4,
        "image-only": 9,
        "text-only": 10,
    }


def test_wrong_picture_of_an_own_row_comes_from_its_group_first(tmp_path: Path) -> None:
    groups = ["x", "y", "x", "y", "z"]
    _, wrong = _wrong_pictures(tmp_path, *((n, "How many?", f"{n}1", group) for n, group in enumerate(groups)))
    assert [wrong[answer][0] for answer in ("01", "11", "21", "31")] == [2, 3, 0, 1]
    assert wrong["41"][0] != 4


def test_wrong_picture_of_options_has_the_same_options(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for number, options in enumerate((["Egg", "Larva", "Adult"], ["Egg", "Larva", "Adult"], ["Seed", "Leaf", "Fruit"])):
        write_picture(tmp_path / f"{number}.png", number)
        answer = {"options": options, "answer": options[number]}
        rows.append({"image": f"{number}.png", "question": "Which stage?", **answer})
    write_lines(tmp_path / "rows.jsonl", rows)
    build = _build(tmp_path / "out", ("rows", tmp_path))
    shown = {
        r["references"]["text"]: r["references"]["image"] for r in build.rows() if r["condition"] == "text-correct"
    }
    assert shown == {"Egg": "Larva", "Larva": "Egg"}


def test_contradicting_number_is_never_counted_as_correct(tmp_path: Path) -> None:
    """Half of the golds lie within 5% of many others."""
    build = _build(tmp_path / "build", ("chartqa", original_chartqa(tmp_path / "chartqa", 24)))
    numbers = [rows for rows in _groups(build).values() if rows["aligned"]["strata"]["type"] == "factual"]
    assert len(numbers) == 24
    for rows in numbers:
        text = rows["image-correct"]["references"]
        assert differ(text["text"], text["image"], tolerance=0.05)


def test_contradicting_year_is_near_if_possible(tmp_path: Path) -> None:
    years = ["1950", "1957", "2000", "2004", "2006", "2050"]
    write_lines(
        (folder := own_rows(tmp_path / "r", years)) / "rows.jsonl",
        [{"image": f"{i}.png", "question": "Which year?", "answer": year} for i, year in enumerate(years)],
    )
    build = _build(tmp_path / "out", ("rows", folder))
    values = {
        r["references"]["image"]: r["references"]["text"] for r in build.rows() if r["condition"] == "image-correct"
    }
    assert set(values) == set(years)
    assert all(0 < abs(int(right) - int(wrong)) <= 5 for right, wrong in values.items())
    lent = [right for right, wrong in values.items() if values.get(wrong) == right]
    assert sorted(lent) in (["2000", "2004"], ["2004", "2006"])


def test_yes_and_no_make_all_conditions_but_both_wrong(tmp_path: Path) -> None:
    """With two answers the wrong picture of text-correct is one of the other; both-wrong would need a third."""
    build = _build(tmp_path / "out", ("rows", own_rows(tmp_path / "r", ["Yes", "No", "yes.", "no"])))
    singles = {f"{source}-only/{side}" for source in ("image", "text") for side in ("right", "wrong")}
    for rows in _groups(build).values():
        assert set(rows) == {*FOUR[:3], *singles}
        assert differ(*rows["text-correct"]["references"].values())
        assert differ(*rows["image-correct"]["references"].values())
    assert {c: sum(reasons.values()) for c, reasons in build.manifest["conditions_left_out"].items()} == {
        "both-wrong": 4
    }
    assert build.manifest["conditions"]["both-wrong"] == 0


def test_row_without_a_wrong_value_keeps_its_other_conditions(tmp_path: Path) -> None:
    build = _build(tmp_path / "out", ("rows", own_rows(tmp_path / "t", ["Yes", "No", "Obesity"])))
    assert build.manifest["examples"]["factual"] == 3
    by_answer = {rows["aligned"]["references"]["image"]: rows for rows in _groups(build).values()}
    assert set(by_answer["Obesity"]) == {
        *("aligned", "text-correct", "image-only/right", "image-only/wrong", "text-only/right")
    }
    lines = [json.loads(line) for line in (build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert {line["condition"] for line in lines if line["row"] == "rows.jsonl:3"} == {"image-correct", "both-wrong"}
    assert build.manifest["sources"]["rows"]["skipped"] == {}


def test_row_without_a_wrong_picture_keeps_its_other_conditions(tmp_path: Path) -> None:
    write_picture(tmp_path / "0.png", 0)
    rows = [{"image": "0.png", "question": f"{i}?", "answer": str(i)} for i in range(2)]
    write_lines(tmp_path / "rows.jsonl", rows)
    build = _build(tmp_path / "out", ("rows", tmp_path))
    for rows_of in _groups(build).values():
        assert set(rows_of) == {*FOUR[:2], "image-only/right", "text-only/right", "text-only/wrong"}
    assert set(build.manifest["conditions_left_out"]) == {"text-correct", "both-wrong"}


def test_rows_without_any_conflict_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="disagree"):
        _build(tmp_path / "out", ("rows", own_rows(tmp_path / "s", ["Obesity", "obesity", "Obesity."])))
    assert not (tmp_path / "out").exists()


def test_image_option_is_never_the_contradicting_value(tmp_path: Path) -> None:
    for i in range(2):
        write_picture(tmp_path / f"{i}.png", i)
    options = ["<image 2>", "alpha", "<Image 3>", "beta"]
    rows = [
        {"image_1": "0.png", "question": "a?", "options": options, "answer": "B", "subject": "s"},
        {"image_1": "1.png", "question": "b?", "options": ["gamma", "?", "", "delta"], "answer": "A", "subject": "s"},
    ]
    write_lines(tmp_path / "rows.jsonl", rows)
    build = _build(tmp_path / "out", ("mmmu", tmp_path))
    values = {
        r["references"]["image"]: r["references"]["text"] for r in build.rows() if r["condition"] == "image-correct"
    }
    assert values == {"alpha": "beta", "gamma": "delta"}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.sampled_from(
            [
                "1",
                "1.0",
                "2",
                "5 km",
                "5",
                "5%",
                "$5",
                "€5",
                "12 500",
                "12,500",
                "Yes",
                "no",
                "x",
                "X.",
                "2001",
                "2008",
                "2030",
            ]
        ),
        max_size=9,
    )
)
def test_examples_obey_the_rules_for_any_answers(tmp_path_factory: pytest.TempPathFactory, answers: list[str]) -> None:
    folder = own_rows(tmp_path_factory.mktemp("any"), answers)
    usable = [c for c in candidates(read_source("rows", str(folder))) if isinstance(c, Candidate)]
    result = construct(usable, seed=1, per_type=5)
    for example in result.all:
        gold, value, donor = example.right.row.answer, example.value, example.donor
        if value:
            assert differ(gold, value, example.right.row.question)
            assert coarse_type(value) == coarse_type(gold)
        if donor:
            assert differ(gold, donor.row.answer)
            assert example.right.image.pixels != donor.image.pixels
        assert ("both-wrong" in example.conditions) == bool(value and donor and differ(value, donor.row.answer))
        assert ("image-correct" in example.conditions, "text-correct" in example.conditions) == (
            bool(value),
            bool(donor),
        )
        if example.origin == "year within 10":
            assert abs(int(example.value) - int(example.right.row.answer)) <= 10
    tried = sum(map(len, result.examples.values())) + len(result.left_out)
    assert tried + sum(result.unused.values()) == len(usable)


# --- released instances ----------------------------------------------------------------------------------


def test_released_instances_are_used_verbatim(tmp_path: Path) -> None:
    for i in range(2):
        write_picture(tmp_path / "images" / f"{i}.png", i)
    question = "Which year recorded the highest native born employment in Slovenia?"
    rows = []
    for condition, image, stated in (
        ("aligned", 0, "2008"),
        ("img-cor", 0, "2015"),
        ("text_correct", 1, "2008"),
        ("Both-Wrong", 1, "2015"),
    ):
        rows.append(
            {
                "id": f"temporal_5_{condition}",
                "condition": condition,
                "conflict_type": "temporal",
                "query": question,
                "image_path": f"images/{image}.png",
                "text_passage": f"According to the source, the value is {stated}.",
                "gold_answer": "2008",
            }
        )
    rows.append(
        {**rows[0], "id": "temporal_6_aligned", "gold": "1999", "query": "Other?", "image_path": "images/1.png"}
    )
    rows += [
        {**rows[0], "condition": "aligned"},
        {**rows[0], "conflict_type": "spatial"},
        {**rows[0], "condition": "none"},
    ]
    write_lines(tmp_path / "instances.jsonl", rows)
    build = _build(tmp_path / "out", ("released", tmp_path))
    groups = list(_groups(build).values())
    group = next(g for g in groups if len(g) == 8)
    assert group["both-wrong"]["references"] == {"image": "1999", "text": "2015", "right": "2008"}
    assert group["image-only/wrong"]["references"] == {"image": "1999", "right": "2008"}
    assert group["aligned"]["strata"] | {"manual_check": ""} == {
        "type": "temporal",
        "source": "released",
        "correct": "both",
        "manual_check": "",
    }
    assert {len(g) for g in groups} == {8, 3}
    assert build.manifest["sources"]["released"]["skipped"] == {
        "repeated: the example has another row of this condition": 1,
        "the conflict type is not one of the paper's four": 1,
        "the condition is not one of the paper's four": 1,
    }


# --- what a user meets -----------------------------------------------------------------------------------


def test_instances_use_the_requested_prompt_set(tmp_path: Path) -> None:
    build = _build(tmp_path / "out", ("rows", own_rows(tmp_path / "r", ["{passage}", "b", "c"])))
    instances = list(CMCBench().instances(build, "paper"))
    assert [i.id for i in instances] == [row["id"] for row in build.rows()]
    aligned = next(i for i in instances if i.condition == "aligned" and i.references["text"] == ("{passage}",))
    assert _prompt(aligned) == (
        f"Query: {aligned.question}. Retrieved image evidence: [IMAGE]. Retrieved text evidence: "
        "According to the source, the value is {passage}.. Answer the query using the provided evidence."
    )
    alone = {i.condition: _prompt(i) for i in instances if i.group == aligned.group and i.strata["correct"] != "none"}
    assert "[IMAGE]" in alone["image-only"]
    assert "text evidence" not in alone["image-only"]
    assert "image" not in alone["text-only"].lower()
    for instance in CMCBench().instances(build, "conflict-aware"):
        assert "cannot answer" in _prompt(instance)
        assert "Answer the query using the provided evidence." not in _prompt(instance)
    with pytest.raises(SpecError, match="did you mean 'conflict-aware'"):
        CMCBench().instances(build, "conflict-awar")


def _prompt(instance: Instance) -> str:
    return "".join(getattr(part, "text", "[IMAGE]") for part in instance.parts)


def test_correct_label_depends_on_the_condition() -> None:
    benchmark = get_benchmark("cmc-bench")
    accurate = {c: {label for label in benchmark.labels if benchmark.correct(c, label)} for c in benchmark.conditions}
    assert accurate == {
        "aligned": {"IMAGE", "TEXT", "BOTH"},
        "image-correct": {"IMAGE", "BOTH"},
        "text-correct": {"TEXT", "BOTH"},
        "both-wrong": {"NEITHER", "ABSTAIN"},
        "image-only": {"IMAGE"},
        "text-only": {"TEXT"},
        "closed-book": {"IMAGE", "TEXT", "BOTH"},
    }


def test_listing_the_benchmark_loads_nothing_heavy() -> None:
    code = "import sys; from benchmarks.registry import get_benchmark; get_benchmark('cmc-bench'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "PIL", "datasets", "pyarrow", "mlx", "matplotlib"} & set(loaded.split())


def test_sources_without_usable_rows_report_counted_reasons(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", [{"image": "0.png", "question": "?", "answer": "1"}] * 2)
    with pytest.raises(SourceError, match=r"no usable row .2 times: the image is missing"):
        _build(tmp_path / "out", ("rows", tmp_path))
    assert not (tmp_path / "out").exists()
    with pytest.raises(SpecError, match="at least 1"):
        _build(tmp_path / "out", ("rows", tmp_path), per_stratum=0)


def test_the_build_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    build = _build(tmp_path / "out", ("rows", own_rows(tmp_path / "r", ["1", "2", "3"])))
    other = Build(build.path, {**build.manifest, "benchmark": "clash"})
    with pytest.raises(SourceError, match="is a build of clash"):
        CMCBench().instances(other, "paper")


def test_existing_build_is_replaced_only_on_request(tmp_path: Path) -> None:
    source = [("rows", str(own_rows(tmp_path / "r", ["1", "2", "3"])))]
    first = CMCBench().build(source, tmp_path / "out", BuildOptions(seed=0))
    assert CMCBench().build(source, tmp_path / "out", BuildOptions(seed=0)).digest == first.digest
    with pytest.raises(SourceError, match="--replace"):
        CMCBench().build(source, tmp_path / "out", BuildOptions(seed=1))
    second = CMCBench().build(source, tmp_path / "out", BuildOptions(seed=1, replace=True))
    assert second.manifest["seed"] == 1


def test_killed_build_leaves_no_partial_build(tmp_path: Path) -> None:
    original_chartqa(tmp_path / "c", count=40)
    code = (
        "import sys, time; from pathlib import Path; from benchmarks import build, registry\n"
        "wait = build.BuildWriter.finish\n"
        "build.BuildWriter.finish = lambda *a, **k: (print('written', flush=True), time.sleep(60))\n"
        "registry.get_benchmark('cmc-bench').build([('chartqa', sys.argv[1])], Path(sys.argv[2]), build.BuildOptions())"
    )
    out = tmp_path / "out" / "build"
    arguments = [sys.executable, "-c", code, str(tmp_path / "c"), str(out)]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        with pytest.raises(BusyError):
            _build(out, ("chartqa", tmp_path / "c"))
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    with pytest.raises(SourceError, match="is not a built benchmark"):
        Build.open(out)
    build = _build(out, ("chartqa", tmp_path / "c"))
    assert {p.name for p in out.parent.iterdir()} == {"build"}
    _check_every_rule(build)


def test_an_image_that_changes_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own_rows(tmp_path / "r", ["1", "2", "3"])
    before = construct

    def meddling(*args: Any, **options: Any) -> Any:
        result = before(*args, **options)
        for i in range(3):
            write_picture(folder / f"{i}.png", 77)
        return result

    monkeypatch.setattr("benchmarks.cmc_bench.cmc_build.construct", meddling)
    with pytest.raises(SourceError, match="changed while it was read"):
        _build(tmp_path / "out", ("rows", folder))


@pytest.mark.slow
def test_thousands_of_rows_without_a_third_answer_take_bounded_time(tmp_path: Path) -> None:
    write_picture(tmp_path / "0.png", 0)
    write_picture(tmp_path / "1.png", 1)
    answers = ["Yes", "No"] * 2500
    rows = [{"image": f"{i % 2}.png", "question": f"{i}?", "answer": answer} for i, answer in enumerate(answers)]
    write_lines(tmp_path / "rows.jsonl", rows)
    started = time.process_time()
    build = _build(tmp_path / "out", ("rows", tmp_path), per_stratum=5000)
    assert build.manifest["conditions"]["both-wrong"] == 0
    assert time.process_time() - started < 20
