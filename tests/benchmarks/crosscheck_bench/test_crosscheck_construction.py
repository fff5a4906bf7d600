"""CrossCheck-Bench constructed from the project's product set: what a user gets, checked against the raw listings."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.crosscheck_bench import CrossCheckBench
from benchmarks.crosscheck_bench.construction import (
    appendix_templates,
    human_written_questions,
    integration_templates,
    perception_templates,
    product_templates,
)
from benchmarks.crosscheck_bench.construction.question_templates import CATALOGUE
from benchmarks.crosscheck_bench.crosscheck_build import build
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import PRODUCTS, PRODUCTS_FIGURE_8
from benchmarks.errors import ModelError, SpecError
from benchmarks.text.normal_form import normalise
from benchmarks.vocabulary import Media, Text
from tests.support.crosscheck_writer import LIES, NOISE, as_generation, honest, text_of
from tests.support.text_models import CachedModel, Interrupted

SET = Path(__file__).resolve().parents[3] / "assets" / "products"
LETTERS = "ABCD"
L2 = ("BR*", "SPU", "SKU", "BDC")

Row = Mapping[str, Any]


def build_products(out: Path, *, folder: Path = SET, **options: Any) -> Build:
    return build([("products", str(folder))], out, BuildOptions(**options))


def samples(result: Build) -> list[CrossCheckSample]:
    return [CrossCheckSample.from_row(row) for row in result.rows()]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def full_build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build_products(tmp_path_factory.mktemp("crosscheck") / "build")


# --- the truth, from the raw files alone ---------------------------------------------------------


class Raw:
    """The listings as they stand in the files, found by the pictures' bytes."""

    def __init__(self) -> None:
        self.products = {row["id"]: row for row in lines(SET / "products.jsonl")}
        self.sells = {row["brand"]: row["categories"] for row in lines(SET / "brands.jsonl")}
        self.authored = {row["id"]: row for row in lines(SET / "authored.jsonl")}
        self.by_sha: dict[str, list[tuple[Row, Row]]] = {}
        for product in self.products.values():
            for image in product["images"]:
                sha = hashlib.sha256((SET / image["file"]).read_bytes()).hexdigest()
                self.by_sha.setdefault(sha, []).append((product, image))

    def shown(self, sample: CrossCheckSample) -> list[tuple[Row, Row]]:
        """Product and image of each frame; a picture of two products is the product's that the sample is about."""
        return [(*[p for p in self.by_sha[f.sha256] if p[0]["id"] == sample.product], *self.by_sha[f.sha256])[0] for f in sample.frames]  # fmt: skip  # noqa: E501


def values(image: Row, attribute: str) -> list[str]:
    return [box["value"] for box in image["boxes"] if box["attribute"] == attribute]


def _ld(sample: CrossCheckSample, raw: Raw) -> str:
    (first, _), (other, _) = raw.shown(sample)
    return "Yes" if first["brand"] == other["brand"] else "No"


def _brand(sample: CrossCheckSample, raw: Raw) -> str:
    brand = raw.shown(sample)[0][0]["brand"]
    seen = [value for _, image in raw.shown(sample) for value in values(image, "brand")]
    assert set(seen) == ({brand} if brand else set())
    return brand or "Unknown"


def _pmp(sample: CrossCheckSample, raw: Raw) -> str:
    ((_, image),) = raw.shown(sample)
    assert re.search(r"image\. Option: A\. <option> B\. <option> Answer with option letter only\.$", sample.question)
    title = re.findall(r'Item description: "(.*)" Determine', sample.question)[0]
    described = next(p for p in raw.products.values() if p["title"] == title)
    return "B" if described["category"] in values(image, "product") else "A"


def _pmo(sample: CrossCheckSample, raw: Raw) -> str:
    ((product, image),) = raw.shown(sample)
    if not sample.options:
        assert values(image, "brand") == [product["brand"]]
        return str(product["brand"])
    right = [letter for letter, option in zip(LETTERS, sample.options, strict=True) if option in values(image, "text")]
    assert len(right) == 1
    return right[0]


def _pd(sample: CrossCheckSample, raw: Raw) -> str:
    titles = re.findall(r'> Title: "(.*)" Does the image match the product title', sample.question)
    if titles:
        return _title(raw.shown(sample), titles[0])
    *slice_, candidate = raw.shown(sample)
    assert len({product["id"] for product, _ in slice_}) == 1
    assert all(image["kind"] == "frame" for _, image in slice_)
    return "Yes" if candidate[0]["id"] == slice_[0][0]["id"] else "No"


def _title(shown: list[tuple[Row, Row]], title: str) -> str:
    product = shown[0][0]
    assert len(shown) > 1
    assert all(image["kind"] == "frame" and p["id"] == product["id"] for p, image in shown)
    if title == product["title"]:
        return "Yes"
    seen = {box["value"] for _, image in shown for box in image["boxes"]}
    assert product["category"] in seen
    # Another product's title names another kind of thing; a mismatched brand is seen nowhere in the slice.
    assert product["category"] not in title or not any(name in title for name in seen & {product["brand"]})
    return "No"


def _sp(sample: CrossCheckSample, raw: Raw) -> str:
    ((product, _),) = raw.shown(sample)
    amounts = [float(option.removeprefix("$")) for option in sample.options]
    assert "Option: A: <option> B: <option> C: <option> D: <option> No other output is required!" in sample.question
    if sample.conflict_type == "swapped price":
        others = {p["price"]["amount"] for p in raw.products.values() if p["id"] != product["id"]}
        assert set(amounts) - {product["price"]["amount"]} <= others
    else:
        assert all(1.3 * a < b < 3.1 * a for a, b in pairwise(amounts))
    if sample.source == PRODUCTS_FIGURE_8:
        assert amounts == sorted(amounts)
    return LETTERS[amounts.index(product["price"]["amount"])]


def _spu(sample: CrossCheckSample, raw: Raw) -> str:
    (first, _), *others = raw.shown(sample)
    if not sample.options:
        return "Yes" if others[0][0]["id"] == first["id"] else "No"
    right = [LETTERS[i] for i, (product, _) in enumerate(others) if product["spu"] == first["spu"]]
    assert len(right) == 1
    return right[0]


def _sku(sample: CrossCheckSample, raw: Raw) -> str:
    titles = re.findall(r'Title "(.*?)" with', sample.question)
    views = raw.shown(sample)
    # A side view of two volumes can be one picture: then only the title distinguishes them.
    (left, _), (right, _) = views
    family = [p for p in raw.products.values() if p["spu"] == left["spu"]]
    names = [n for n in left["attributes"] if len({p["attributes"][n] for p in family}) > 1] or list(left["attributes"])
    clue_pairs = [
        {n: product["attributes"][n] for n in names if product["attributes"][n] in title or values(image, n)}
        for (product, image), title in zip(views, titles, strict=True)
    ]
    if any(clue_pairs[0][n] != clue_pairs[1][n] for n in names if n in clue_pairs[0] and n in clue_pairs[1]):
        assert left["id"] != right["id"]
        return "B"
    return "A" if all(n in side for side in clue_pairs for n in names) else "C"


def _bdc(sample: CrossCheckSample, raw: Raw) -> str:
    ((product, _),) = raw.shown(sample)
    brand = re.findall(r"Brand_name: (\w+)", sample.question + sample.text)[0]
    assert f"Categories that {brand} sells: {', '.join(raw.sells[brand])}." == sample.text
    return "Yes" if product["category"] in raw.sells[brand] else "No"


def _bc(sample: CrossCheckSample, raw: Raw) -> str:
    images = [image for _, image in raw.shown(sample)]
    assert any(values(image, "covered brand") or values(image, "brand") for image in images)
    return "No" if any(values(image, "brand") for image in images) else "Yes"


def _bi(sample: CrossCheckSample, raw: Raw) -> str:
    row = raw.authored[sample.row_id]
    box = _box(row, raw)
    assert row["detected"] in sample.question
    if box["value"] != row["detected"]:
        return "D"
    meant = {"brand": "AA", "other brand": "BC", "minor brand": "CB"}[box["attribute"]]
    return meant[sample.task == "BI*"]


def _pi(sample: CrossCheckSample, raw: Raw) -> str:
    return {"product": "A", "part": "B", "prop": "C"}[_box(raw.authored[sample.row_id], raw)["attribute"]]


def _box(row: Row, raw: Raw) -> Row:
    product, view, attribute = row["at"].split("/")
    image = next(image for image in raw.products[product]["images"] if image["view"] == view)
    boxes: Row = next(box for box in image["boxes"] if box["attribute"] == attribute)
    return boxes


TRUTH: Mapping[str, Callable[[CrossCheckSample, Raw], str]] = {
    "LD": _ld,
    "BR": _brand,
    "PMP": _pmp,
    "PMO": _pmo,
    "PD*": _pd,
    "SP": _sp,
    "BR*": _brand,
    "SPU": _spu,
    "SKU": _sku,
    "BDC": _bdc,
    "BC": _bc,
    "BC*": _bc,
    "BI": _bi,
    "PI": _pi,
    "BI*": _bi,
}


# --- what comes out ------------------------------------------------------------------------------


def test_product_set_yields_all_15_tasks(full_build: Build) -> None:
    result = samples(full_build)
    counts = Counter(sample.task for sample in result)
    assert set(counts) == set(TASKS)
    assert min(counts.values()) >= 4
    assert len({sample.id for sample in result}) == len(result)
    for task, of in TASKS.items():
        many = [len(sample.frames) > 1 for sample in result if sample.task == task]
        assert not of.multi_frame or all(many)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "seed"), [(PRODUCTS, 0), (PRODUCTS, 1), (PRODUCTS, 2), (PRODUCTS_FIGURE_8, 0)])
def test_every_answer_is_right_by_the_raw_listings(tmp_path: Path, source: str, seed: int) -> None:
    raw = Raw()
    for sample in samples(build([(source, str(SET))], tmp_path / "build", BuildOptions(seed=seed))):
        assert TRUTH[sample.task](sample, raw) == sample.answer, sample


@pytest.mark.slow
@pytest.mark.parametrize("task", ["LD", "PD*", "SPU", "BDC", "BC", "BC*"])
def test_yes_and_no_are_balanced(tmp_path: Path, task: str) -> None:
    folder = tmp_path / "set"
    shutil.copytree(SET, folder, ignore=shutil.ignore_patterns("labels", "recipe"))
    answers = Counter(s.answer for s in samples(build_products(tmp_path / "build", folder=folder)) if s.task == task)
    assert answers["Yes"] == answers["No"] >= 2


def test_correct_options_are_balanced_over_letters(full_build: Build) -> None:
    for task in ("PMO", "SP", "SPU"):
        letters = Counter(s.answer for s in samples(full_build) if s.task == task and s.options)
        assert set(letters) == set(LETTERS)
        assert max(letters.values()) - min(letters.values()) <= 2


def test_every_perturbation_occurs_and_differs_from_the_truth(full_build: Build) -> None:
    result = samples(full_build)
    assert {s.conflict_type for s in result} == {
        *("", "another brand's logo", "brand taken out of the title"),
        *("another brand put into the title", "title of another product", "logo in place of the product"),
        *("another product of the category", "another product", "another brand in the background"),
        *("another SKU of the style", "deciding attribute withheld", "another brand's product"),
        *("another brand of the category", "covered brand", "piggybacked brand", "false detection"),
        *("item not for sale", "swapped price"),
    }
    for sample in result:
        if sample.options:
            right = sample.options[LETTERS.index(sample.answer)]
            assert [normalise(option) for option in sample.options].count(normalise(right)) == 1
        if sample.conflict_type == "another brand put into the title":
            decoy = re.findall(r"works with (\w+)", sample.question)
            assert decoy
            assert decoy[0] != sample.answer
            assert sample.answer not in sample.question.split("Visual reference")[0]
        if sample.conflict_type == "brand taken out of the title":
            assert not [name for name in Raw().sells if name in sample.question]


def test_the_target_limits_each_task_and_shortfalls_are_reported(tmp_path: Path) -> None:
    result = build_products(tmp_path / "build", per_stratum=12)
    tasks = result.manifest["construction"][0]["tasks"]
    for task in ("LD", "BR", "PMP", "PMO", "PD*", "SKU", "SPU", "BDC"):
        assert 11 <= tasks[task]["samples"] <= 12  # labels leave some out
        assert tasks[task]["shortfall"] == 0
    assert tasks["SP"] == {**tasks["SP"], "offered": 8, "shortfall": 4}  # a price is in one four only
    assert tasks["BR*"] == {**tasks["BR*"], "samples": 8, "offered": 8, "shortfall": 4}
    with pytest.raises(SpecError, match="at least 1"):
        build_products(tmp_path / "none", per_stratum=0)


def test_every_template_of_level_1_yields_questions_and_the_manifest_counts_them(full_build: Build) -> None:
    counts = full_build.manifest["construction"][0]["templates"]
    assert counts["L1_in_the_paper"] == "45+"
    # Figure 8's ladder of prices is in products-figure-8, and the set's only similar brands cannot be balanced.
    assert counts["L1"] == {"determined": 21, "used": 18}
    assert counts["L2"] == {"determined": 11, "used": 10}  # every slice of the set has another brand in it
    provenance = lines(full_build.path / "provenance.jsonl")
    assert sum(row["samples"] for row in counts["samples"]) == sum(row["made"] == "template" for row in provenance)
    of_level_3 = {row["wording"] for row in provenance if row["made"] == "authored"}
    assert {row["wording"] for row in provenance} == {t.wording for t in CATALOGUE} | of_level_3


def test_region_of_the_brand_is_boxed_under_every_strategy(full_build: Build) -> None:
    instances = list(CrossCheckBench().instances(full_build, "paper"))
    asked = [i for i in instances if perception_templates.PMO_REGION in i.question and i.condition == "vanilla"]
    marks = [[mark.label for part in i.parts if isinstance(part, Media) for mark in part.marks] for i in asked]
    assert {tuple(labels) for labels in marks} == {(), ("logo",)}


def test_options_stand_where_figure_8_prints_them(full_build: Build) -> None:
    texts: dict[str, str] = {}
    for instance in CrossCheckBench().instances(full_build, "paper"):
        text = "".join(part.text if isinstance(part, Text) else "<image>" for part in instance.parts)
        assert "<option>" not in text
        if instance.condition == "vanilla" and instance.references.get("options"):
            texts[instance.strata["task"]] = text
    assert re.search(r'or "?"D"\.|"C", "D"\. Option: A: \$\S+ B: \$\S+ .* No other output is required!$', texts["SP"])
    assert texts["PMO"].endswith("You must select one of these options and output its option number. No other output is needed!")  # fmt: skip  # noqa: E501
    assert "SPU as the given product image: A: No. 1 B: No. 2 C: No. 3 D: No. 4 Your output should only" in texts["SPU"]
    assert re.search(r"Options:\nA\) Confirmed as same product\nB\).*\nC\) .* Output Format: Your", texts["SKU"])
    assert texts["PI"].endswith("], Option: A: Main item for sale B: Partial item for sale C: Item not for sale")
    assert "Option: A. The detected brand is the primary brand of the product. B. The" in texts["BI"]
    assert "Option: A: The detected brand is one of the brands" in texts["BI*"]


def _bytes(contents: Build) -> dict[str, bytes]:
    return {str(p.relative_to(contents.path)): p.read_bytes() for p in sorted(contents.path.rglob("*")) if p.is_file()}


@pytest.mark.slow
def test_build_depends_only_on_the_seed(tmp_path: Path, full_build: Build) -> None:
    again, other = build_products(tmp_path / "again"), build_products(tmp_path / "other", seed=1)
    assert _bytes(again) == _bytes(full_build)
    assert [s.id for s in samples(other)] != [s.id for s in samples(full_build)]
    # What people wrote does not depend on the seed.
    assert [s for s in samples(other) if s.level == "L3"] == [s for s in samples(full_build) if s.level == "L3"]


def test_build_stores_graphs_and_provenance(full_build: Build) -> None:
    graphs = lines(full_build.path / "graphs.jsonl")
    assert sum("brand" in row for row in graphs) == len(Raw().sells)
    facts = {fact["id"]: fact for row in graphs for fact in row["facts"]}
    provenance = {row["sample"]: row for row in lines(full_build.path / "provenance.jsonl")}
    assert set(provenance) == {sample.id for sample in samples(full_build)}
    for row in provenance.values():
        assert row["facts"]
        assert set(row["facts"]) <= set(facts)
    report = full_build.manifest["construction"][0]
    assert report["facts"] == len(facts) == sum(len(row["facts"]) for row in graphs)
    assert report["consistent"] == 1.0
    reviewed = Counter(row["task"] for row in lines(full_build.path / "review.jsonl"))
    counts = Counter(sample.task for sample in samples(full_build))
    assert all(reviewed[task] == -(-counts[task] // 10) for task in TASKS)


def test_model_input_does_not_reveal_the_answer(full_build: Build) -> None:
    raw = Raw()
    names = {image["file"] for p in raw.products.values() for image in p["images"]}
    names |= {p["id"] for p in raw.products.values()} | set(raw.authored)
    secret = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    for instance in CrossCheckBench().instances(full_build, "paper"):
        assert re.fullmatch(r"crosscheck-[0-9a-f]{16}/[a-z+-]+", instance.id)
        assert re.fullmatch(r"crosscheck-[0-9a-f]{16}", instance.group)
        for part in instance.parts:
            if isinstance(part, Text):
                assert not secret.search(part.text)
                assert not re.search(r"covered|other brand|minor brand|conflict|perturb", part.text)
            elif isinstance(part, Media):
                assert re.fullmatch(r"[0-9a-f]{64}\.png", part.name)
                kinds = {"item", "logo", "price tag", "text", "volume", "weight", "power", "colour"}
                assert {mark.label for mark in part.marks} <= kinds


def test_bi_content_frames_have_the_red_box_under_every_strategy(full_build: Build) -> None:
    result = [i for i in CrossCheckBench().instances(full_build, "paper") if i.strata["task"] == "BI*"]
    assert {i.condition for i in result} >= {"vanilla", "som"}
    for instance in result:
        assert any(part.marks for part in instance.parts if isinstance(part, Media))
    plain = [i for i in CrossCheckBench().instances(full_build, "paper") if i.strata["task"] == "BI"]
    assert not any(p.marks for i in plain if i.condition == "vanilla" for p in i.parts if isinstance(p, Media))


PAPER = SET.parents[2] / "shared" / "papers" / "crosscheck-bench.txt"


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's text is not here")
@pytest.mark.parametrize(
    "words",
    [
        *(
            perception_templates.LD,
            perception_templates.BR,
            perception_templates.BR_FORM,
            perception_templates.PMP,
            perception_templates.PMP_FORM,
            *perception_templates.PMP_OPTIONS,
        ),
        *(
            perception_templates.PMO,
            perception_templates.PMO_FORM,
            perception_templates.PMO_REGION,
            product_templates.SP,
        ),
        product_templates.SP_FORM,
        appendix_templates.TITLE,
        *(
            integration_templates.BR,
            integration_templates.BR_FORM,
            integration_templates.SPU_FORM,
            integration_templates.SPU_PAIR,
            integration_templates.SKU,
        ),
        *(
            integration_templates.SKU_FORM,
            *integration_templates.SKU_OPTIONS,
            integration_templates.BDC,
            integration_templates.BDC_FORM,
        ),
        *(
            human_written_questions.BC,
            human_written_questions.BC_CONTENT,
            *human_written_questions.BI_OPTIONS,
            *human_written_questions.BI_CONTENT_OPTIONS,
            *human_written_questions.PI_OPTIONS,
        ),
        # What Figure 8 breaks off, as far as it goes, and what has our instruction for the form behind it.
        product_templates.PD.removesuffix(" introduced, and whether it is the candidate product."),
        *integration_templates.SPU.split("; please select the product of the same "),
        human_written_questions.BC_FORM.removesuffix(" Answer Yes or No."),
        "detected logos seems related to the brand",
        "This is a normalized bounding box coordinate:",
    ],
)
def test_wordings_match_the_paper_exactly(words: str) -> None:
    assert " ".join(words.split()) in " ".join(PAPER.read_text("utf-8").replace("\\$", "$").split())


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's text is not here")
def test_price_question_follows_its_example() -> None:
    text = " ".join(PAPER.read_text("utf-8").split())
    example = text[
        text.rindex("StylePrice") : text.index("Brand Circumvention Content (BC*)", text.rindex("StylePrice"))
    ]
    asked, _, form = example.partition("Option: A: ")
    assert asked.strip().endswith(product_templates.SP)
    assert product_templates.SP_FORM in form


# --- L2 by a model -------------------------------------------------------------------------------


def _written(tmp_path: Path, model: CachedModel, **options: Any) -> Build:
    folder = tmp_path / "set"
    if not folder.exists():
        shutil.copytree(SET, folder, ignore=shutil.ignore_patterns("labels", "recipe"))
    return build_products(tmp_path / "build", folder=folder, writer=model, replace=True, **options)


def _rejected(reasons: Build) -> Counter[str]:
    skipped = lines(reasons.path / "skipped.jsonl")
    return Counter(row["reason"].partition(":")[0] for row in skipped if row["row"].split(":")[0] in L2)


def test_all_questions_of_an_honest_writer_are_accepted(tmp_path: Path) -> None:
    model = CachedModel(lambda request: as_generation(honest(text_of(request))))
    result = _written(tmp_path, model, per_stratum=8)
    assert not _rejected(result)
    raw = Raw()
    of_l2 = [sample for sample in samples(result) if sample.task in L2]
    assert Counter(sample.task for sample in of_l2) == dict.fromkeys(L2, 8)
    for sample in of_l2:
        assert TRUTH[sample.task](sample, raw) == sample.answer
    assert len(model.asked) == 32
    how = {row["sample"]: row["made"] for row in lines(result.path / "provenance.jsonl")}
    assert {how[sample.id] for sample in of_l2} == {"model"}
    assert "Would somebody who orders either listing" in next(s.question for s in of_l2 if s.task == "SKU")
    assert result.manifest["models"] == {"writer": "scripted"}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_caught_by_its_check(tmp_path: Path, lie: str) -> None:
    check, change = LIES[lie]
    model = CachedModel(lambda request: as_generation(change(text_of(request), honest(text_of(request)))))
    result = _written(tmp_path, model, per_stratum=2)
    rejected = _rejected(result)
    assert set(rejected) == {check}
    assert rejected[check] >= 8
    assert not [sample for sample in samples(result) if sample.task in L2]
    reasons = [row["reason"] for row in lines(result.path / "skipped.jsonl")]
    assert all('reply: "{' in reason for reason in reasons)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE)
def test_unparsed_replies_are_retried_then_dropped(tmp_path: Path, noise: str) -> None:
    model = CachedModel(lambda request: as_generation(NOISE[noise]))
    result = _written(tmp_path, model, per_stratum=1)
    rejected = _rejected(result)
    assert set(rejected) == {"unparsed"}
    assert len(model.asked) == 3 * rejected["unparsed"]
    assert {request.decoding.temperature for request in model.asked} == {0.0, 0.7}


def test_reply_parsed_on_retry_is_accepted(tmp_path: Path) -> None:
    model = CachedModel(
        lambda request: as_generation(honest(text_of(request)) if request.decoding.temperature else NOISE["prose"])
    )
    result = _written(tmp_path, model, per_stratum=2)
    assert not _rejected(result)
    assert sum(sample.task in L2 for sample in samples(result)) == 8


def test_unreachable_writer_ends_the_build_with_one_sentence(tmp_path: Path) -> None:
    from benchmarks.vocabulary import Generation

    model = CachedModel(lambda request: Generation("", "", "error", error="no route"))
    with pytest.raises(ModelError, match=r"answered none of 8 requests \(no route\)"):
        _written(tmp_path, model, per_stratum=8)


def _fickle(prompt: str) -> Any:
    """Every other reply has one of the lies."""
    number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
    if number % 2:
        return honest(prompt)
    _, change = list(LIES.values())[number // 2 % len(LIES)]
    return change(prompt, honest(prompt))


def test_no_lie_of_a_fickle_writer_is_accepted(tmp_path: Path) -> None:
    result = _written(tmp_path, CachedModel(lambda request: as_generation(_fickle(text_of(request)))), per_stratum=12)
    raw = Raw()
    of_l2 = [sample for sample in samples(result) if sample.task in L2]
    assert len(of_l2) > 24
    for sample in of_l2:
        assert TRUTH[sample.task](sample, raw) == sample.answer
    assert set(_rejected(result)) == {check for check, _ in LIES.values()}
    # One that is rejected is followed by another of its answer, so that the balance stays.
    assert Counter(s.answer for s in of_l2 if s.task == "BDC") == {"Yes": 6, "No": 6}


@pytest.mark.slow
def test_interrupted_construction_repeats_no_request(tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return as_generation(_fickle(text_of(request)))

    straight = CachedModel(reply)
    full_build = _bytes(_written(tmp_path / "straight", straight, per_stratum=6))
    replies: dict[str, Any] = {}
    with pytest.raises(Interrupted):
        _written(tmp_path / "halved", CachedModel(reply, replies=replies, most=17, shuffle=3), per_stratum=6)
    assert not (tmp_path / "halved" / "build").exists()
    rest = CachedModel(reply, replies=replies, shuffle=5)
    assert _bytes(_written(tmp_path / "halved", rest, per_stratum=6)) == full_build
    assert len(rest.asked) + 17 == len(straight.asked)
