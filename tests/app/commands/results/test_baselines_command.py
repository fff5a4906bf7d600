"""``rashomon baselines``: runs made of a run's answers to each source alone, and where they appear."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engine.baseline_runs import AGREE, CONFIDENT, Reader, available_rules, make_baseline
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance
from mlx_backends.baseline_engine import ORACLE, baseline_name, split_baseline
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import answered
from tests.support.json_output import cells_of
from tests.support.runs import make_run

EXAMPLES = 12


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with runs of policies on the demo's charts, as a user's own rows, and their baselines.

    ``random`` reads each source alone without a mistake, and takes one of two by chance.
    """
    home = Workspace(tmp_path_factory.mktemp("baselines") / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    for policy in ("random", "always-image"):
        answered(home, policy, f"policy:{policy}", EXAMPLES)
    rashomon = Rashomon(home.path.parent)
    rashomon.run("baselines", "random", "always-image")
    return rashomon


def row(rashomon: Rashomon, run: str, table: str) -> dict[str, float | None]:
    (parsed,) = rashomon.json("show", run, "--table", table)["tables"]
    return {name: cell["value"] for name, cell in cells_of(parsed).items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "accuracies", "abstains", "needless"),
    [
        # Two sources read without a mistake: they agree in aligned alone.
        ("random-agree", (1, 0, 0, 1), 1, 0),
        # Right wherever a source is, and an abstention where none is.
        ("random-oracle", (1, 1, 1, 1), 1 / 3, 0),
        # Reads no text, so it never agrees with itself; its oracle can only take the image.
        ("always-image-agree", (0, 0, 0, 1), 1, 1),
        ("always-image-oracle", (1, 1, 0, 1), 2 / 3, 0),
    ],
)
def test_baselines_of_policies_have_the_values_that_follow_from_arithmetic(
    rashomon: Rashomon, run: str, accuracies: tuple[float, ...], abstains: float, needless: float
) -> None:
    main = row(rashomon, run, "main")
    assert tuple(main[name] for name in ("Aligned", "Img-Cor", "Txt-Cor", "Both-Wr")) == accuracies
    abstention = row(rashomon, run, "abstention")
    assert abstention["abstains under conflict"] == pytest.approx(abstains)
    assert abstention["abstains needlessly"] == needless


@pytest.mark.slow
def test_baselines_stand_beside_models_in_tables_figures_and_recommendations(
    rashomon: Rashomon, tmp_path: Path
) -> None:
    runs = ("random", "random-agree", "random-oracle")
    shown = rashomon.run("show", *runs, "--table", "utility").stdout
    assert all(label in shown for label in ("policy:random", "agree: policy:random", "oracle: policy:random"))
    rashomon.run("export", *runs, "--format", "csv", "--out", tmp_path / "files")
    assert "agree: policy:random" in (tmp_path / "files" / "risk-coverage.csv").read_text("utf-8")
    assert "oracle: policy:random" in rashomon.run("compare", *runs).stdout
    listed = rashomon.json("runs")
    assert {"random-agree", "random-oracle"} <= {run["name"] for run in listed}


def test_an_oracle_is_a_ceiling_and_an_agreement_of_a_model_can_be_recommended(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    model = _model(workspace, lambda source, value: value)
    made = {rule: make_baseline(workspace, model, rule) for rule in (AGREE, ORACLE)}
    rashomon = Rashomon(tmp_path)
    assert {read_summary(baseline.folder).state for baseline in made.values()} == {"planned"}
    rashomon.run("baselines", model.name, "--rule", f"{AGREE},{ORACLE}")  # judges those that exist
    assert {read_summary(baseline.folder).state for baseline in made.values()} == {"done"}
    names = [model.name, *(baseline.folder.name for baseline in made.values())]
    parsed = rashomon.json("recommend", *names, "--costs", "needless=0.1")
    assert parsed["best"] == f"{model.name}-agree"
    assert "ceiling" in json.dumps(parsed["table"])
    assert not [name for name in parsed["holds"] if name.endswith(ORACLE)]


def test_a_baseline_takes_the_time_of_all_its_answers(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    baseline = make_baseline(workspace, _model(workspace, lambda source, value: value), AGREE)
    with RunStore.read(baseline.folder) as store:
        answer = next(store.records()).generations[-1]
    assert (answer.decode_s, answer.prompt_tokens, answer.peak_memory, answer.calls) == (2 * 0.5, 2 * 30, 3 * 10**9, 0)


def test_the_more_confident_answer_is_the_one_with_the_likelier_tokens(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")

    def answer(instance: Instance) -> Generation:
        source = "image" if "image" in instance.references else "text"
        # The text's answer is less likely in total, and more likely by token.
        tokens, score = ((1, 2), -1.0) if source == "image" else ((1, 2, 3, 4, 5), -2.0)
        text = instance.references[source][0]
        return Generation(f"{instance.id}#0", text, "stop", tokens, scores=(-1.0, -1.0, -5.0, score))

    run = make_run(workspace, "scored", _instances(), answer, model="org/m")
    with pytest.raises(SpecError):
        make_baseline(workspace, run, CONFIDENT)
    with RunStore.open(run) as store:
        store.set_meta("spec", {**store.meta("spec"), "score": "likelihood"})
    assert available_rules(run) == [AGREE, CONFIDENT, ORACLE]
    with RunStore.read(make_baseline(workspace, run, CONFIDENT).folder) as store:
        answers = {record.instance.condition: record.generations[-1].text for record in store.records()}
    assert answers == {condition: text for condition, (_, text) in _VALUES.items()}


def test_answers_in_other_words_agree_by_value_and_empty_ones_never(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")

    def words(source: str, value: str) -> str:
        return f"It is {value}." if source == "image" else f"{value} trams"

    worded = make_baseline(workspace, _model(workspace, words, name="worded"), AGREE)
    silent = make_baseline(workspace, _model(workspace, lambda source, value: "", name="silent"), AGREE)
    assert _abstains(worded.folder) == {
        "aligned": False,
        "image-correct": True,
        "text-correct": True,
        "both-wrong": True,
    }
    assert all(_abstains(silent.folder).values())


@pytest.mark.parametrize(
    ("first", "second", "question", "agree"),
    [
        ("12 500", "12,500", "How many?", True),
        ("July 4, 1776", "4 July 1776", "When?", True),
        ("43", "43%", "Which percentage?", True),
        ("43", "43%", "What?", False),
        ("$43", "€43", "Price?", False),
        ("43 km", "43 miles", "Distance?", False),
    ],
)
def test_two_answers_agree_if_they_are_the_same_value(first: str, second: str, question: str, agree: bool) -> None:
    instance = Instance("i", "g", "mc", question, (), {"image": ("x",), "text": ("y",), "distractor": ("z",)})
    answers = [Generation("i#0", text, "stop") for text in (first, second)]
    assert Reader(get_benchmark("clash")).agree(instance, answers[0], answers[1]) is agree


def test_failed_and_missing_answers_are_not_guessed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")

    def answer(instance: Instance) -> Generation:
        if instance.condition == "text-only":
            return Generation(f"{instance.id}#0", "", "error", error="out of memory")
        return Generation(f"{instance.id}#0", "12", "stop")

    failing = make_baseline(workspace, make_run(workspace, "failing", _instances(), answer, model="org/m"), AGREE)
    with RunStore.read(failing.folder) as store:
        assert {record.generations[-1].finish_reason for record in store.records()} == {"error"}
    Rashomon(tmp_path).run("baselines", "failing", code=1)
    only = [instance for instance in _instances() if not instance.condition.startswith("text")]
    run = make_run(workspace, "half", only, lambda i: Generation(f"{i.id}#0", "12", "stop"), model="org/m")
    with pytest.raises(SpecError):
        make_baseline(workspace, run, AGREE)


def test_a_run_in_progress_has_no_baseline_yet(tmp_path: Path) -> None:
    folder = _model(workspace := Workspace(tmp_path / "workspace"), lambda source, value: value)
    with FileLock(folder / "lock") as lock:
        assert lock.acquire("process 1")
        Rashomon(tmp_path).run("baselines", folder.name, code=4)
    assert workspace.run_names() == [folder.name]


def test_what_cannot_be_made_is_refused(rashomon: Rashomon) -> None:
    for arguments in (("random", "--rule", "typo"), ("random-agree",), ("no-such-run",)):
        assert "Traceback" not in rashomon.run("baselines", *arguments, code=2).stderr
    again = rashomon.run("baselines", "random")
    assert "exists already" in again.stdout
    assert rashomon.run("resume", "random-agree").stdout
    assert rashomon.run("resume", "random-agree", "--repeat", "aligned", code=2).stderr
    assert rashomon.run(
        "--batch", "--benchmark", "cmc-bench", "--model", "baseline:agree:x", "--limit", "2", code=2
    ).stderr


def test_names_of_baselines_keep_their_model() -> None:
    assert split_baseline(baseline_name(AGREE, "openai:gpt-5:x")) == (AGREE, "openai:gpt-5:x")
    assert split_baseline("openai:gpt-5") == ("", "openai:gpt-5")


# --- runs of a model --------------------------------------------------------------------------------

_VALUES = {
    "aligned": ("12", "12"),
    "image-correct": ("12", "15"),
    "text-correct": ("18", "12"),
    "both-wrong": ("18", "15"),
}
_ALONE = {"image-only/right": "12", "image-only/wrong": "18", "text-only/right": "12", "text-only/wrong": "15"}


def _instances() -> list[Instance]:
    """Examples as a user's own rows have them."""
    items = []
    for number in range(EXAMPLES):
        group = f"factual-{number:04d}"
        strata = {"type": "factual", "source": "rows", "correct": "both"}
        for condition, (image, text) in _VALUES.items():
            references = {"image": (image,), "text": (text,)}
            items.append(Instance(f"{group}/{condition}", group, condition, "How many trams?", (), references, strata))
        for name, value in _ALONE.items():
            source, condition = name.partition("-")[0], name.partition("/")[0]
            items.append(
                Instance(f"{group}/{name}", group, condition, "How many trams?", (), {source: (value,)}, strata)
            )
    return items


def _model(workspace: Workspace, says: Callable[[str, str], str], name: str = "model") -> Path:
    """A run that reads each source alone, in the words of ``says``, and follows the image where there are both."""

    def answer(instance: Instance) -> Generation:
        source = "image" if "image" in instance.references else "text"
        text = says(source, instance.references[source][0])
        return Generation(f"{instance.id}#0", text, "stop", (1,), 30, 2, 0.1, 0.5, 3 * 10**9)

    return make_run(workspace, name, _instances(), answer, model="org/m")


def _abstains(folder: Path) -> dict[str, bool]:
    with RunStore.read(folder) as store:
        return {
            record.instance.condition: "cannot be determined" in record.generations[-1].text
            for record in store.records()
        }
