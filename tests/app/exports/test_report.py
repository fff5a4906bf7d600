"""The report: what it advises, what it says is wrong and unknown, and that hostile text stays text in HTML and LaTeX."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.run_plan import check_spec, plan_run
from app.exports.export_input import Export, ExportOptions, benchmark_of, load_runs
from app.exports.export_writer import write_files
from app.exports.report.report_document import (
    Block,
    Bullets,
    Example,
    Facts,
    Paragraph,
    Plot,
    Report,
    Section,
    Shares,
    Verdict,
)
from app.exports.report.report_export import build_report
from app.exports.report.report_html import to_html
from app.exports.report.report_latex import to_latex_files
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import read_inputs
from app.run_spec import BatchSpec
from app.store.run_facts import LICENCE_KEY
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.stats.intervals import percent
from benchmarks.vocabulary import Estimate, Generation, Instance
from benchmarks.vocabulary import Verdict as Label
from mlx_backends.models.model_licence import read_licence
from tests.app.exports.test_html_export import HOSTILE, Page
from tests.support.command import ROOT, Rashomon
from tests.support.demo import FOUR_BIT
from tests.support.latex import EVERY, compile_latex
from tests.support.runs import Answering, instances, make_run, says

EXAMPLES = 40


def follows(source: str, *, but: int = 0) -> Answering:
    """Answer with the value of ``source``, and in every ``but``-th example with nothing to label."""

    def answer(instance: Instance) -> Generation:
        if but and int(instance.group[-4:]) % but == 0:
            return says("")(instance)
        values = instance.references.get(source) or next(iter(instance.references.values()))
        return says(values[0])(instance)

    return answer


def knows(instance: Instance) -> Generation:
    """Answer with the right source's value."""
    source = "text" if instance.condition == "text-correct" else "image"
    if instance.condition == "both-wrong":
        return says("I cannot tell which of them is right.")(instance)
    return follows(source)(instance)


class Home:
    """A workspace, and reports of its runs."""

    def __init__(self, path: Path) -> None:
        self.workspace = Workspace(path / "workspace")

    def run(self, name: str, answering: Answering, model: str, examples: int = EXAMPLES, own: bool = False) -> Path:
        asked = instances(examples)
        if own:
            asked = [replace(instance, strata={**instance.strata, "source": "rows"}) for instance in asked]
        return make_run(self.workspace, name, asked, answering, model=model)

    def report(self, *folders: Path, **options: object) -> Report:
        trust = options.get("trust")
        inputs = read_inputs(folders).with_trust(trust if isinstance(trust, str) else None)
        runs = load_runs(self.workspace, folders, None, inputs)
        export = Export(
            benchmark_of(runs),
            runs,
            tables_from(inputs),
            ExportOptions(**options),  # type: ignore[arg-type]
            inputs=inputs,
            folders=folders,
            workspace=self.workspace,
        )
        return build_report(export)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def good(home: Home) -> Path:
    return home.run("good", knows, "org/good-4bit")


@pytest.fixture(scope="module")
def blind(home: Home) -> Path:
    return home.run("blind", follows("text", but=5), "org/blind-4bit")


@pytest.fixture(scope="module")
def policy(home: Home) -> Path:
    return home.run("always-text", follows("text"), "policy:always-text")


def verdict(report: Report) -> Verdict:
    return next(block for block in report.first_page if isinstance(block, Verdict))


def limits(report: Report) -> dict[str, str]:
    (section,) = [section for section in report.sections if section.title == "Limitations"]
    (bullets,) = section.blocks
    assert isinstance(bullets, Bullets)
    return dict(bullets.items)


# --- the first page ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_better_model_is_chosen_and_its_mistakes_are_listed(
    home: Home, good: Path, blind: Path, policy: Path
) -> None:
    report = home.report(blind, good, policy)
    assert verdict(report).headline == "Choose good-4bit."
    shares = next(block for block in report.first_page if isinstance(block, Shares))
    rows = {label: cells for label, _, cells in shares.rows}
    disagree = shares.columns.index("image and text disagree")
    best, worst = rows["good-4bit"][disagree], rows["simple rule"][disagree]
    assert best is not None
    assert worst is not None
    assert best.value == 1.0
    assert worst.value == pytest.approx(1 / 3)
    assert [remark for label, remark, _ in shares.rows if label == "simple rule"] == ["always the text's value"]


@pytest.fixture(scope="module")
def own(home: Home) -> tuple[Path, Path, Path]:
    """Two models that do the same and one that follows the text, over a user's own rows."""
    runs = [("first", knows), ("second", knows), ("third", follows("text"))]
    first, second, third = (home.run(f"own-{name}", does, f"org/{name}-4bit", own=True) for name, does in runs)
    return first, second, third


def test_own_documents_are_asked_what_should_win(home: Home, own: tuple[Path, Path, Path]) -> None:
    first, second, third = own
    alike, apart = verdict(home.report(first, second)), verdict(home.report(first, third))
    assert alike.headline.startswith("No difference between the models is shown")
    assert apart.headline.startswith("Which model to choose depends on what should win")
    by_text, flagged = apart.sentences[1:3]
    assert by_text.startswith("If the text should win: third-4bit follows it most")
    assert flagged.startswith("If a conflict should be flagged: first-4bit flags it most")
    for block in (alike, apart):
        assert "always the" not in " ".join(block.sentences), (
            "no rule without a model is a bar for a choice of one's own"
        )


def test_a_rule_decides_the_first_page(home: Home, own: tuple[Path, Path, Path]) -> None:
    report = home.report(own[0], own[2], trust="text")
    assert verdict(report).headline == "Choose third-4bit."
    conflict, other = (block for block in report.first_page if isinstance(block, Shares))
    assert conflict.columns[0] == "follows your rule (text)"
    assert "reads the image alone" in other.columns
    cells = {label: row[0] for label, _, row in conflict.rows}
    assert cells["third-4bit"] is not None
    assert cells["third-4bit"].value == 1.0


def test_a_model_no_better_than_a_rule_is_not_recommended(home: Home, blind: Path, policy: Path) -> None:
    report = home.report(blind, policy)
    assert verdict(report).headline.startswith("Do not rely on blind-4bit yet. blind-4bit lacks 32 of 160 answers")
    assert any(
        "a rule that needs no model (always the text's value)" in sentence for sentence in verdict(report).sentences
    )
    mistakes = next(block for block in report.first_page if isinstance(block, Bullets))
    assert any("it follows the text 32 of 40 times (80%)" in text for _, text in mistakes.items)
    example = next(block for block in report.first_page if isinstance(block, Example))
    lines = dict(example.lines)
    assert lines["blind-4bit answers"] == lines["The text says"] != lines["The image says"] == lines["Right would be"]


@pytest.mark.slow
def test_policies_alone_and_equal_models_give_no_choice(home: Home, policy: Path) -> None:
    assert "no model" in verdict(home.report(policy)).headline
    few = [home.run(f"few-{name}", follows(name), f"org/few-{name}", 6) for name in ("image", "text")]
    assert verdict(home.report(*few)).headline == "It is too early to choose."


@pytest.mark.slow
def test_where_nothing_is_right_by_itself_no_model_is_chosen(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    held_out = ROOT / "assets" / "demo" / "held_out" / "mmkc-bench"
    rashomon.run("build", "mmkc-bench", "--source", f"published={held_out}")
    conditions = ("--conditions", "original-open,context-memory-open")
    options = ("--benchmark", "mmkc-bench", "--limit", "4", *conditions, "--display", "none")
    folders = []
    for policy in ("always-image", "always-text"):
        rashomon.run("--batch", *options, "--model", f"policy:{policy}", "--name", policy)
        folders.append(rashomon.workspace / "runs" / policy)
        with RunStore.open(folders[-1]) as store:
            store.set_meta("spec", {**store.meta("spec"), "model": f"org/{policy}"})
    advice = verdict(Home(tmp_path).report(*folders))
    assert "Choose" not in advice.headline
    assert any("always-image keeps to its own answer in 100%" in sentence for sentence in advice.sentences)


# --- limitations ---------------------------------------------------------------------------------


def some_fail(instance: Instance) -> Generation:
    number = int(instance.group[-4:])
    if number == 0:
        return Generation(f"{instance.id}#0", "", "error", error="it broke")
    if number == 1:
        return Generation(f"{instance.id}#0", "12 " * 9, "length", (1, 2), 30, 27, 0.1, 0.5, 10**9)
    return says("12")(instance)


def test_limitations_follow_from_the_run(home: Home, good: Path, blind: Path, policy: Path) -> None:
    names = set(limits(home.report(good)))
    assert {
        "No person checked the scores",
        "One wording",
        "No baseline",
        "Compressed weights",
        "Mixture of cases",
    } <= names
    assert not {"Answers without a score", "Errors", "Truncated answers", "Very few questions", "Not finished"} & names
    of_both = limits(home.report(blind, policy))
    assert "blind-4bit 20%" in of_both["Answers without a score"]
    assert "No baseline" not in of_both
    failing = home.run("failing", some_fail, "org/failing", 8)
    with RunStore.open(failing) as store:
        store.set_meta("identity", {**store.meta("identity"), "quantisation": "bf16", "temperature": 0.7, "limit": 8})
    of_failing = limits(home.report(failing))
    assert {"Very few questions", "Errors", "Truncated answers", "Answers drawn by chance", "Sample"} <= set(of_failing)
    assert "Compressed weights" not in of_failing
    assert next(iter(of_failing)) == "Very few questions", "the gravest comes first"


def test_an_undecided_answer_is_a_limitation_and_no_mistake(home: Home) -> None:
    folder = make_run(
        home.workspace,
        "hesitant",
        instances(EXAMPLES),
        knows,
        model="org/hesitant",
        undecided=lambda instance: instance.group.endswith("5"),
    )
    report = home.report(folder)
    text = limits(report)["Undecided answers"]
    assert text == "Some answers were left undecided by the judge (hesitant 10%); they count in no percentage."
    mistakes = next(block for block in report.first_page if isinstance(block, Bullets))
    assert mistakes.items == (("", "Nothing in these answers: all that could be scored are right."),)


def test_without_conflicts_the_report_says_so_and_advises_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    alone = [instance for instance in instances(EXAMPLES) if instance.condition in ("image-only", "text-only")]
    report = home.report(make_run(home.workspace, "alone", alone, knows, model="org/alone"))
    assert "disagree" in verdict(report).headline
    assert "disagree" not in report.subtitle
    assert "No disagreement" in limits(report)
    setting = next(block for block in report.first_page if isinstance(block, Paragraph))
    assert "when it sees the image alone and when it sees the text alone" in setting.text
    aligned = [instance for instance in instances(EXAMPLES) if instance.condition == "aligned"]
    agreeing = home.report(make_run(home.workspace, "agreeing", aligned, knows, model="org/agreeing"))
    assert next(iter(limits(agreeing))) == "No disagreement"


@pytest.mark.parametrize(
    ("share", "shown"), [(0.625, "62.5%"), (0.375, "37.5%"), (1 / 3, "33%"), (1.0, "100%"), (None, "unknown")]
)
def test_percentages_of_two_halves_add_up(share: float | None, shown: str) -> None:
    assert percent(share) == shown


def test_both_models_mistakes_and_the_whole_prompt_are_on_the_first_page(home: Home) -> None:
    follow = [home.run(f"follows-{source}", follows(source), f"org/{source}") for source in ("image", "text")]
    page = home.report(*follow).first_page
    lines = [text for block in page if isinstance(block, Bullets) for _, text in block.items]
    assert any(line.startswith(("image: ", "text: ")) for line in lines)
    (example,) = (block for block in page if isinstance(block, Example))
    names = [name for name, _ in example.lines]
    assert "[image]" in dict(example.lines)["Prompt"]
    assert names.index("Right would be") < next(i for i, name in enumerate(names) if name.endswith(" answers"))


def test_figures_have_no_number_of_the_paper(home: Home, good: Path) -> None:
    report = home.report(good)
    plots = [block for section in report.sections for block in section.blocks if isinstance(block, Plot)]
    titles = [plot.figure.get_suptitle() for plot in plots]
    assert any("proportions" in title for title in titles)
    assert not any("Figure" in title for title in titles), "the report numbers its own"


def test_a_persons_labels_end_a_limitation_and_add_a_section(home: Home) -> None:
    folder = home.run("labelled", follows("image"), "org/labelled")
    with RunStore.open(folder) as store:
        pairs = [(record.instance.id, store.answer_of(record.instance.id)) for record in store.records()]
        label = Label("human:ann", "labelled", "IMAGE", "")
        store.add_verdicts([(*stored, label) for _, stored in pairs[:30] if stored is not None])
    report = home.report(folder)
    assert "No person checked the scores" not in limits(report)
    (section,) = [section for section in report.sections if section.title == "Agreement with people"]
    assert len(section.blocks) > 1


# --- licences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: apache-2.0\ntags: [x]\n---\n# A model", "apache-2.0"),
        ("---\nlicense: other\nlicense_name: lfm1.0\n---\n", "lfm1.0"),
        ("---\nlicense: 'mit'  # as before\n---\n", "mit"),
        ("# license: mit", None),
        ("---\nlicense:\n---\n", None),
        ("---\nlicense: " + "x" * 10_000 + "\n---\n", None),
    ],
)
def test_the_card_states_the_licence(card: str, licence: str | None, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(card)
    assert read_licence(tmp_path) == licence


def test_a_planned_run_stores_the_licence_of_its_model(tmp_path: Path) -> None:
    model = shutil.copytree(FOUR_BIT, tmp_path / "model")
    (model / "README.md").write_text("---\nlicense: a-licence\n---\n")
    workspace = Workspace(tmp_path / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], workspace.build_folder("cmc-bench"), BuildOptions())
    licences = []
    for name in (str(model), "policy:always-text"):
        (spec,) = BatchSpec(benchmark="cmc-bench", model=(name,), limit=1).runs()
        with RunStore.read(plan_run(workspace, check_spec(workspace, spec)).folder) as store:
            licences.append(store.meta(LICENCE_KEY, None))
    assert licences == ["a-licence", None]


@pytest.mark.slow
def test_the_stored_licence_stands_in_the_report(home: Home, good: Path) -> None:
    with RunStore.open(good) as store:
        store.set_meta("licence", "a-licence-of-its-own")
    assert "a-licence-of-its-own" in to_html(home.report(good))


@pytest.mark.slow
def test_a_run_without_conflicts_has_a_report(tmp_path: Path) -> None:
    rashomon, source = Rashomon(tmp_path), ROOT / "assets" / "demo" / "held_out" / "cmc-bench"
    rashomon.run("build", "cmc-bench", "--source", f"rows={source}", "--per-stratum", "2")
    limits = ("--limit", "2", "--conditions", "aligned", "--display", "none")
    rashomon.run("batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--name", "r", *limits)
    rashomon.run("report", "r", "--out", "report")
    assert "Very few questions" in (tmp_path / "report" / "report.html").read_text("utf-8")


# --- the files -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_a_report_without_scripts(home: Home, good: Path, policy: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(home.workspace.path.parent)
    rashomon.run("report", "good", "always-text", "--title", "Our <charts>", "--canonical", "--out", tmp_path / "out")
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    assert {"report.html", "report.tex", "figures/labels.pdf"} <= written
    page = Page((tmp_path / "out" / "report.html").read_text("utf-8"))
    assert page.texts["h1"] == ["Our <charts>"]
    assert "script" not in page.texts
    tex = (tmp_path / "out" / "report.tex").read_text("utf-8")
    assert set(re.findall(r"\\includegraphics.*?\{(.*?)\}", tex)) <= written
    rashomon.run("report", "good", "always-text", "--canonical", "--title", "Our <charts>", "--out", tmp_path / "again")
    for name in written:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert rashomon.run("report", "good", "--margin", "7", code=2).stderr
    assert rashomon.run("report", "good", "good", code=2).stderr


def balanced(tex: str) -> None:
    """Assert that environments and braces of a LaTeX document are balanced, and that nothing else is a command of ours."""
    environments: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(.*?)\}", tex):
        if kind == "begin":
            environments.append(name)
        else:
            assert environments.pop() == name
    assert not environments
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", tex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


TEXTS = (*HOSTILE, r"\input{/etc/passwd} \end{document} $x$ % # _ ^ ~ & { } \\", "中文", "")


@settings(max_examples=60)
@given(st.text() | st.sampled_from(TEXTS))
def test_any_text_stays_text(text: str) -> None:
    share = Estimate(0.5, 0.4, 0.6, 10)
    blocks: list[Block | str] = [
        Verdict(text, (text,)),
        Paragraph(text),
        Bullets(((text, text), ("", text))),
        Facts(((text, text),)),
        Example(((text, text),), None, text),
        Shares((text,), ((text, text, (share,)),), text),
        text,
    ]
    report = Report(text, text, blocks, [Section(text, blocks), Section(text, blocks, appendix=True)], [text])
    page = Page(to_html(report))
    assert {"script", "img", "a", "b", "td"} & {tag for tag, _ in page.elements} <= {"b", "td"}
    assert [tag for tag, _ in page.elements].count("h2") == 3
    (tex,) = [content for name, content in to_latex_files(report).items() if name == "report.tex"]
    assert isinstance(tex, str)
    balanced(tex)
    known = set(re.findall(r"\\[a-zA-Z]+", str(to_latex_files(_plain(report))["report.tex"])))
    printed = {"\\textbackslash", "\\textasciitilde", "\\textasciicircum", "\\textless", "\\textgreater", "\\textbar"}
    more = {"\\textasciigrave", "\\Delta", "\\pm", "\\hspace"}
    assert set(re.findall(r"\\[a-zA-Z]+", tex)) <= known | printed | more


def _plain(report: Report) -> Report:
    share = Estimate(0.5, 0.4, 0.6, 10)
    blocks: list[Block | str] = [
        Verdict("a", ("a",)),
        Paragraph("a"),
        Bullets((("a", "a"),)),
        Facts((("a", "a"),)),
        Example((("a", "a"),)),
        Shares(("a",), (("a", "a", (share,)),)),
        "a",
    ]
    return replace(report, first_page=blocks, sections=[Section("a", blocks), Section("a", blocks, appendix=True)])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX here")
def test_the_latex_compiles_whatever_names_and_answers_say(home: Home, tmp_path: Path) -> None:
    texts = [*TEXTS, EVERY, "a_50%$x^2$\\", "\u202e\u05e9\u05dc\u05d5\u05dd \U0001f600", "x" * 300]
    folders = [
        make_run(
            home.workspace,
            f"hostile-{place}",
            instances(30, texts[place]),
            says(text),
            model=f"/models/q_4%$\\{text[:80]}",
        )
        for place, text in enumerate(texts[:4])
    ]
    for name, runs in (("one", folders[:1]), ("all", folders)):
        write_files(tmp_path / name, to_latex_files(home.report(*runs, title=" ".join(texts)[:2000])))
        pages, too_wide = compile_latex(tmp_path / name / "report.tex")
        assert pages < 20
        assert too_wide < 10
    every = [Paragraph(text) for text in texts] + [Facts(((text, text),)) for text in texts]
    report = Report(
        EVERY, EVERY, [Verdict(EVERY, tuple(texts)), Bullets(((EVERY, EVERY),))], [Section("S", every)], texts
    )
    write_files(tmp_path / "every", to_latex_files(report))
    compile_latex(tmp_path / "every" / "report.tex")
