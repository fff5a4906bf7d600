"""The interface of one paper's benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind, Answers
from benchmarks.benchmark_types import AbstentionRule as AbstentionRule
from benchmarks.benchmark_types import Contradiction as Contradiction
from benchmarks.benchmark_types import DataSource as DataSource
from benchmarks.benchmark_types import ImportedAnswer as ImportedAnswer
from benchmarks.errors import SourceError, SpecError, did_you_mean
from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.protocols.protocols import ABSTENTION, DirectProtocol, Protocol
from benchmarks.table_types import Estimate, LabelMetrics, Table
from benchmarks.vocabulary import DOCUMENT, WITHOUT_SOURCES, Decoding, Instance, Media, Pages, Part, Record, Verdict

if TYPE_CHECKING:
    from benchmarks.audit.blind_question import BlindQuestion
    from benchmarks.build import Build, BuildOptions
    from benchmarks.review_guide import ReviewGuide
    from benchmarks.rows.row_checks import ReadRow, TableCheck
    from benchmarks.rubric import Rubric
    from benchmarks.training_rows import TrainingOptions, TrainingRow


class Benchmark(ABC):
    """One paper's benchmark: its construction, prompts, labels and tables."""

    name: str
    title: str
    paper: str
    in_plain_words: str = ""
    """What it asks of a model and what a good one does, for readers who know nothing of it; one to three sentences."""
    conditions: tuple[str, ...]
    labels: tuple[str, ...]
    prompt_sets: Mapping[str, str]
    """Name to one-line description; the first is the default."""
    placeholders: tuple[str, ...] = ()
    """The placeholders that a prompt set from a file must have; empty: it takes none. See ``benchmarks/prompt_template.py``."""
    sources: tuple[DataSource, ...]
    stratum: str
    """The key of ``Instance.strata`` that subsets are stratified by."""
    judges: tuple[str, ...]
    """The judges that need no model and are made for it; the first is the default."""
    paper_rows: str
    """The basis of the paper's rows; a note under tables that show them."""
    paper_judge: str = "not told"
    """The judge of the paper's rows."""
    paper_prompts: str = "not told"
    """The prompt set of the paper's rows."""
    paper_decoding: str = "not told"
    """The decoding of the paper's rows."""
    most_checkers: int | None = 1
    """The number of models that may check its construction; None for any number."""
    paper_embedder: str = ""
    """The paper's embedding model, by its Hub id; a construction uses it where it is cached and none is named."""
    counts_flags: bool = False
    """True if its tables count every label that fits an answer (``Verdict.flags``)."""
    unparsed_label: str | None = None
    """The label that an answer with nothing to label counts as in its tables; None: they leave such answers out."""
    default_conditions: tuple[str, ...] = ()
    """The conditions of a run that names none; empty for all but those :attr:`without_sources`."""
    without_sources: Mapping[str, tuple[str, ...]] = {}
    """The conditions that leave out sources, or the question, each with the conditions that its answers are compared with.

    They are among :attr:`conditions`. A run has them only if it names them, and no metric of a paper counts them.
    """
    decoding: Decoding = Decoding()
    """The paper's decoding, for what a user leaves open."""
    conflicts: tuple[str, ...] = ()
    """The conditions under which the sources disagree."""
    conflict_metric: str = ""
    """The paper's name for the share of right answers under :attr:`conflicts`, if it has one."""
    without_conflict: tuple[str, ...] = ()
    """The conditions without a conflict; empty: all but those of :attr:`conflicts`."""
    detection: str = ""
    """The metric that counts answers which name a conflict instead of resolving it, where accuracy counts only the latter."""
    behaviours: Mapping[str, str] = {}
    """The behaviour that a label shows, as in "follows the text"; for the labels that show one."""
    abstention_phrase: str = ABSTENTION
    """The abstention that is scored beside an answer to an open question: what its prompts ask for on a conflict."""
    without_media: str = ""
    """A sentence on how to run it with a model that does not take its media, if there is a way."""
    inventions: frozenset[str] = frozenset()
    """The labels of values that no source has, which no decision takes as right, whatever the paper's metric does."""
    situations: Mapping[str, str] = {}
    """The situation of a condition, as in "when only the image is right"; stands behind a behaviour."""

    scorecard_note: str = ""
    """A sentence on what its scorecard tells, and what it cannot; empty if its labels name its sources."""
    abstention: AbstentionRule | None = None
    """The labels that abstain or name the conflict; None if no label does."""

    tasks: Mapping[str, str] = {}
    """The tasks of its questions by abbreviation, each with its level and capabilities; empty if the paper names none."""
    capabilities: Mapping[str, str] = {}
    """The capabilities that its tasks need, by abbreviation; empty if the paper names none."""

    def protocol(self, decoding: Decoding) -> Protocol:
        """Return the protocol that turns its instances into model calls."""
        return DirectProtocol(decoding)

    def options(self, instance: Instance) -> tuple[str, ...]:
        """Return what an answer to ``instance`` may begin with, as its prompt asks for it; empty where it may be anything."""
        return ()

    def remarks(self, record: Record) -> tuple[str, ...]:
        """Return remarks on how one record was prompted, a sentence each."""
        return ()

    @property
    def rubric(self) -> Rubric | None:
        """The rubric for a judge that is a language model, if there is one."""
        return None

    def official_rubric(self, clone: Path) -> Rubric:
        """Return the rubric with the judge prompt of the benchmark's official code, of which ``clone`` is the user's folder.

        Raises SourceError if the folder is not that code as published, SpecError where no such prompt is known.
        """
        raise SpecError(f"{self.name} has no official code with a judge's prompt; leave --official-code out.")

    @abstractmethod
    def build(self, sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
        """Construct the instances from ``(source name, folder or Hub id)`` pairs into the folder ``out``.

        Raises SourceError where a source is not there or not of a known layout.
        """

    @abstractmethod
    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        """Yield the instances of a build, in the build's order, with the parts of ``prompt_set``.

        Only a benchmark with :attr:`placeholders` is given a prompt set from a file.
        """

    def all_instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        """Yield the instances of a build that is not varied, each example's followed by those :attr:`without_sources`."""
        return self.instances(build, prompt_set)

    @property
    def full_conditions(self) -> tuple[str, ...]:
        """The conditions but those :attr:`without_sources`."""
        return tuple(name for name in self.conditions if name not in self.without_sources)

    def conditions_of(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the conditions of a run that names these: the default ones, too, if it names none but WITHOUT_SOURCES."""
        return (*(self.default_conditions if {*names} <= {WITHOUT_SOURCES} else ()), *names)

    @property
    def review_guide(self) -> ReviewGuide:
        """The guide by which people review its builds."""
        from benchmarks.review_guide import ReviewGuide

        return ReviewGuide()

    build_options: frozenset[str] = frozenset()
    """Fields of a build's options that it heeds, among those that only some benchmarks have a use for."""
    rows_source: str = ""
    """The source that is a file of a user's own rows, as ``rashomon build --from`` takes it; empty: there is none."""

    def check_rows(self, file: Path, options: BuildOptions) -> TableCheck:
        """Return what a build with ``options`` makes of each row of ``file``, without building.

        Raises SpecError where it takes no rows, SourceError where the file cannot be read.
        """
        raise SpecError(f"{self.name} is not built from a table of rows; see `rashomon benchmarks` for its sources.")

    def read_rows(self, file: Path, mapping: str) -> Iterator[ReadRow]:
        """Yield the rows of ``file`` as a build reads them with ``mapping``, the text of ``--map``. Raises as check_rows."""
        raise SpecError(f"{self.name} is not built from a table of rows.")

    def check(self, build: Build, prompt_set: Prompts) -> None:
        """Raise SourceError where ``build`` is another benchmark's, SpecError for a prompt set that it cannot use."""
        if build.benchmark != self.name:
            raise SourceError(f"{build.path} is a build of {build.benchmark}, not of {self.name}; name another folder.")
        if isinstance(prompt_set, PromptTemplate):
            prompt_set.check_fits(self.name, self.placeholders)
        elif prompt_set not in self.prompt_sets:
            raise SpecError(
                f"{self.name} has no prompt set {prompt_set!r}; {did_you_mean(prompt_set, self.prompt_sets)}"
            )

    @abstractmethod
    def correct(self, condition: str, label: str) -> bool:
        """Return whether ``label`` counts as accurate under ``condition``."""

    def score(self, condition: str, label: str) -> float:
        """Return the share of the full score that ``label`` earns under ``condition``: 1 or 0 unless overridden."""
        return float(self.correct(condition, label))

    @property
    def has_partial_scores(self) -> bool:
        """True if some label earns a part of the full score."""
        return any(0 < self.score(condition, label) < 1 for condition in self.conditions for label in self.labels)

    @property
    def counted_conditions(self) -> frozenset[str]:
        """The conditions under which an answer is right or wrong by itself.

        An answer that a sibling is judged by is neither, and nor is that sibling's.
        """
        metrics, bases = self.label_metrics(), {self.basis(condition) for condition in self.conditions}
        judged_alone = {name for name in self.conditions if self.basis(name) is None and name not in bases}
        counted = judged_alone.intersection(self.conditions if metrics is None else metrics.conditions)
        return frozenset(counted.difference(self.without_sources))

    def left_out(self, kind: AnswerKind) -> str:
        """Return why its tables leave out an answer that may have a label; "" if they count it."""
        return ""

    def counted_labels(self, kind: AnswerKind, judge: str) -> tuple[str, ...]:
        """Return the labels that an answer counts as in its tables, by ``judge``; empty if they leave it out."""
        outcome = kind.outcome(judge)
        if outcome == "unparsed" and self.unparsed_label is not None:
            return (self.unparsed_label,)
        if outcome != "labelled" or self.left_out(kind):
            return ()
        return (kind.verdicts[judge].flags if self.counts_flags else ()) or (kind.label(judge),)

    def counted_score(self, kind: AnswerKind, judge: str) -> float | None:
        """Return the share of the full score that an answer earns in its tables; None if they leave it out."""
        labels = self.counted_labels(kind, judge)
        return max((self.score(kind.condition, label) for label in labels), default=None)

    def chooses_none(self, kind: AnswerKind, judge: str) -> bool:
        """Return whether an answer to a closed question chooses none of its options, which says nothing of its sources."""
        if not kind.is_answered or kind.is_no_answer(judge):
            return kind.is_answered
        label = kind.label(judge) if kind.outcome(judge) == "labelled" else ""
        abstains = self.abstention.labels.get(kind.condition, ()) if self.abstention else ()
        # A label that is right somewhere is one of the options, such as that the caption is wrong.
        return label in abstains and not any(self.score(name, label) for name in self.counted_conditions)

    def is_invention(self, label: str | None, behaviour: str | None) -> bool:
        """Return whether an answer with this label and behaviour gives what no source has, and is not known to be right."""
        return label in self.inventions and behaviour != "right"

    def with_label(self, kind: AnswerKind, judge: str, label: str) -> AnswerKind:
        """Return an answered kind, to which all judges give ``label``, for the rows of rules that look at no source."""
        verdicts = {name: Verdict(name, "labelled", label) for name in (judge, *kind.verdicts)}
        return replace(kind, finish_reason="stop", is_empty=False, verdicts=verdicts)

    @abstractmethod
    def tables(self, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
        """Return every table of the paper that these answers can fill; ``runs`` maps a row's label to the answers of a run.

        The first one is called "main". Answers hold no texts: what a table needs of a text is read by :meth:`reading`, or read
        again for the few answers that it prints (:attr:`Answers.read`).
        """

    def build_tables(self, build: Build) -> list[Table]:
        """Return the statistics of a build's examples that the paper draws; none unless overridden.

        Raises SourceError for a build of another benchmark.
        """
        return []

    table_strata: tuple[str, ...] | None = None
    """The strata that its tables use; None for all. A stratum with few values takes less memory."""

    def reading(self, record: Record) -> Hashable:
        """Return what its tables use of a record's texts and references, such as the option that an answer chooses.

        It is called once for each record, and the result is :attr:`AnswerKind.reading`. A value that many records share, such as
        a tuple of words, takes less memory.
        """
        return None

    def basis(self, condition: str) -> str | None:
        """Return the condition of the sibling whose answer is needed to judge an answer under ``condition``; None: it needs none.

        An answer is judged only when its basis is there, and again when its basis was asked again.
        """
        return None

    def single_source(self, instance: Instance) -> str:
        """Return the modality of the one source that ``instance`` shows, if that source alone answers its question; else "".

        The share of right answers to such instances says whether a model can read the source at all.
        """
        return ""

    def pages(self, instance: Instance) -> Pages:
        """Return the pages of ``instance``: the document that the user named, and its media, the first of which is its own."""
        media = tuple(dict.fromkeys(part.sha256 for part in instance.parts if isinstance(part, Media)))
        document = instance.strata.get(DOCUMENT)
        return Pages((*([f"{DOCUMENT} {document}"] if document else []), *media[:1]), media[1:])

    value_labels: frozenset[str] = frozenset()
    """The labels that name a value: two answers to one instance with the same one of them state the same value."""

    def sources_alone(self, instance: Instance) -> Mapping[str, str]:
        """Return the ids of the siblings that show each of the sources of ``instance`` alone, by source; empty if none do.

        Baselines are made of the answers to them.
        """
        return {}

    def right_sources(self, instance: Instance) -> Sequence[str]:
        """Return those of :meth:`sources_alone` that are right."""
        return ()

    def choices(self, instance: Instance) -> int:
        """Return the number of answers to a closed question, of which one is right; 0 for an open one."""
        return len(self.options(instance))

    def score_with_sources(self, kind: AnswerKind, judge: str) -> float | None:
        """Return the score of an answer that those :attr:`without_sources` are compared with; None if it is not comparable."""
        return self.counted_score(kind, judge)

    def score_without_sources(self, condition: str, full: str, label: str) -> float:
        """Return the score of a label under a condition :attr:`without_sources`, compared with the condition ``full``."""
        return self.score(full, label)

    def blind_question(self, instance: Instance) -> BlindQuestion | None:
        """Return the question of ``instance`` as it stands without its sources; None if its answer cannot be chosen blind.

        By default, it is made of :meth:`options` and the references; see ``benchmarks/audit``.
        """
        from benchmarks.audit.blind_question import closed_question

        return closed_question(instance, self.options(instance))

    def label_metrics(self) -> LabelMetrics | None:
        """Return the metrics that are functions of label counts, for correcting them by human labels."""
        return None

    def answer_metrics(self) -> LabelMetrics | None:
        """Return :meth:`label_metrics` over answers, of which one without a label counts as the tables count it."""
        metrics = self.label_metrics()
        return metrics and replace(metrics, unparsed=self.unparsed_label)

    def overall(self, answers: Answers, judge: str) -> Mapping[str, Estimate]:
        """Return the paper's overall metrics, by name, where these are no share of the answers; headlines begin with them."""
        return {}

    answer_formats: Mapping[str, str] = {}
    """The formats of published predictions that :meth:`read_answers` reads: name to one-line description."""

    def answer_files(self, path: Path, form: str) -> Sequence[Path]:
        """Return the files that :meth:`read_answers` reads for ``path``, in a fixed order.

        Raises SourceError where there are none.
        """
        return (path,)

    def read_answers(self, path: Path, form: str, left_out: Callable[[str, str], None]) -> Iterator[ImportedAnswer]:
        """Yield the answers in a file of published predictions, in the format ``form``, one of ``answer_formats``.

        ``left_out`` is told of every row that cannot be used, or only in part: which, and why. Raises SourceError where it is
        no such file.
        """
        raise SpecError(f"{self.name} has no published predictions; import JSON lines of id and answer.")

    training_filters: tuple[str, ...] = ()
    """The filters by which :meth:`training_rows` can select examples; the first is the default."""

    def origins(self, answers: Answers) -> Mapping[str, Callable[[AnswerKind], bool]]:
        """Return tests for the answers of each origin of conflicts, by its name, where a run has several; else none."""
        return {}

    def origins_clause(self, manifest: Mapping[str, Any]) -> str:
        """Return how many conflicts a build's rows came with, and how many were made; "" where that is not told apart."""
        return ""

    def passages(self, row: Mapping[str, Any], instance: Instance) -> Sequence[str]:
        """Return the texts that compete with the images of an instance of a build's row; none unless overridden.

        They are spelled and ordered as in the prompt.
        """
        return ()

    def contradiction(self, siblings: Sequence[Instance]) -> Contradiction | None:
        """Return the right and the wrong value of an example's texts, given its instances; None if it has no such pair."""
        return None

    def reordered(self, parts: Sequence[Part], passages: Sequence[str], *, text_first: bool) -> tuple[Part, ...]:
        """Return a prompt of one image with the image after all texts, or before them; ``passages`` are those displayed."""
        return tuple(sorted(parts, key=lambda part: isinstance(part, Media) == text_first))

    def training_filter(self, builds: Sequence[Build]) -> str:
        """Return the filter that decided what is in ``builds``; "" where each of the filters can be chosen."""
        return ""

    def training_rows(self, build: Build, options: TrainingOptions) -> Iterator[TrainingRow]:
        """Yield the rows that a build gives for fine-tuning; ``options`` have one of its prompt sets and filters."""
        raise SpecError(f"{self.name} has no training data.")
