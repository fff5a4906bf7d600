"""What a benchmark is, and which there are; with :mod:`benchmarks.vocabulary`, what all packages speak of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import SourceError, SpecError, did_you_mean
from benchmarks.vocabulary import (
    SHOWN_TEXT,
    Cell,
    Chart,
    Choice,
    Decoding,
    Estimate,
    FinishReason,
    Form,
    Generation,
    Instance,
    JSONObject,
    Likelihood,
    Mark,
    Media,
    Message,
    Modality,
    Outcome,
    Part,
    Record,
    Request,
    Table,
    Text,
    Verdict,
    VerdictStatus,
    canonical_json,
    digest,
    instance_from_json,
    instance_to_json,
    part_from_json,
    part_to_json,
)

if TYPE_CHECKING:
    from benchmarks.build import Build, BuildOptions
    from benchmarks.rows.own_rows import TableCheck
    from benchmarks.rubric import Rubric

__all__ = [
    "SHOWN_TEXT",
    "Benchmark",
    "Cell",
    "Chart",
    "Choice",
    "DataSource",
    "Decoding",
    "Estimate",
    "FinishReason",
    "Form",
    "Generation",
    "ImportedAnswer",
    "Instance",
    "JSONObject",
    "LabelMetrics",
    "Likelihood",
    "Mark",
    "Media",
    "Message",
    "Modality",
    "Outcome",
    "Part",
    "Protocol",
    "Record",
    "Request",
    "Table",
    "Text",
    "Verdict",
    "VerdictStatus",
    "benchmark_names",
    "canonical_json",
    "did_you_mean",
    "digest",
    "get_benchmark",
    "instance_from_json",
    "instance_to_json",
    "part_from_json",
    "part_to_json",
]


class Protocol(ABC):
    """How one instance becomes model calls; a pure function, replayed from what is stored."""

    name: str

    @abstractmethod
    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        """The next request, given the generations so far in order of step, or None when the instance is done."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """A source a build can draw on: its name on the command line, what it is, and its Hub id if it has one."""

    name: str
    description: str
    hub_id: str | None = None


class Benchmark(ABC):
    """One paper's benchmark: its construction, prompts, labels and tables."""

    name: str
    title: str
    paper: str
    conditions: tuple[str, ...]
    labels: tuple[str, ...]
    prompt_sets: Mapping[str, str]
    """Name to one-line description; the first is the default."""
    sources: tuple[DataSource, ...]
    stratum: str
    """The key of ``Instance.strata`` that subsets are stratified by."""
    judges: tuple[str, ...]
    """The judges that need no model and are made for it; the first is the default."""
    paper_rows: str
    """What the paper's rows rest on; stands under tables that show them."""
    paper_judge: str = "not told"
    """Whose labels the paper's rows rest on."""
    paper_prompts: str = "not told"
    """Which of the prompt sets the paper's rows were asked with."""
    paper_decoding: str = "not told"
    """How the paper's rows were decoded."""
    most_checkers: int | None = 1
    """How many models may check what its construction writes; None: any number."""
    counts_flags: bool = False
    """Whether its tables count every label of an answer that fits (``Verdict.flags``), not one an answer."""
    default_conditions: tuple[str, ...] = ()
    """What is asked where a user names no conditions; empty: all of them."""
    decoding: Decoding = Decoding()
    """How its paper decodes, for what a user leaves open."""
    conflicts: tuple[str, ...] = ()
    """The conditions under which the sources disagree."""
    behaviours: Mapping[str, str] = {}
    """What a model does whose answers have a label, as in "follows the text"; for the labels that say it."""
    without_media: str = ""
    """How it can be asked of a model that cannot take its media, a sentence, where there is a way."""
    situations: Mapping[str, str] = {}
    """When a condition of ``conflicts`` is met, as in "when the image alone is right"; stands behind a behaviour."""

    def protocol(self, decoding: Decoding) -> Protocol:
        """How its instances become model calls."""
        from benchmarks.protocols import DirectProtocol

        return DirectProtocol(decoding)

    def options(self, instance: Instance) -> tuple[str, ...]:
        """What an answer to ``instance`` may begin with, as its prompt asks for it; empty where it may be anything."""
        return ()

    def remarks(self, record: Record) -> tuple[str, ...]:
        """What whoever looks at one record should know of how it was asked, a sentence each."""
        return ()

    @property
    def rubric(self) -> Rubric | None:
        """The rubric for a judge that is a language model, if there is one."""
        return None

    @abstractmethod
    def build(self, sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
        """Construct the instances from ``(source name, folder or Hub id)`` pairs into the folder ``out``.

        Raises SourceError where a source is not there or not of a known layout.
        """

    @abstractmethod
    def instances(self, build: Build, prompt_set: str) -> Iterator[Instance]:
        """The instances of a build, in the build's order, with the parts of ``prompt_set``."""

    rows_source: str = ""
    """The source that is a file of a user's own rows, as ``rashomon build --from`` takes it; empty: there is none."""

    def check_rows(self, file: Path, options: BuildOptions) -> TableCheck:
        """What a build with ``options`` makes of each row of ``file``; builds nothing.

        Raises SpecError where it takes no rows, SourceError where the file cannot be read.
        """
        raise SpecError(f"{self.name} is not built from a table of rows; see `rashomon benchmarks` for its sources.")

    def check(self, build: Build, prompt_set: str) -> None:
        """Raise SourceError where ``build`` is another benchmark's, SpecError where there is no such prompt set."""
        if build.benchmark != self.name:
            raise SourceError(f"{build.path} is a build of {build.benchmark}, not of {self.name}; name another folder.")
        if prompt_set not in self.prompt_sets:
            raise SpecError(
                f"{self.name} has no prompt set {prompt_set!r}; {did_you_mean(prompt_set, self.prompt_sets)}"
            )

    @abstractmethod
    def correct(self, condition: str, label: str) -> bool:
        """Whether ``label`` counts as accurate under ``condition``."""

    @abstractmethod
    def tables(self, runs: Mapping[str, Sequence[Record]], judge: str, *, resamples: int, seed: int) -> list[Table]:
        """Every table of the paper that these records can fill; ``runs`` maps a row's label to its records.

        The first one is called "main".
        """

    def basis(self, condition: str) -> str | None:
        """The condition of the sibling whose answer is needed to judge an answer under ``condition``; None: it needs none.

        An answer is judged only when its basis is there, and again when its basis was asked again.
        """
        return None

    def single_source(self, instance: Instance) -> str:
        """Return the modality of the one source that ``instance`` shows, if that source alone answers its question; else "".

        The share of right answers to such instances says whether a model can read the source at all.
        """
        return ""

    def figures(self) -> LabelMetrics | None:
        """The figures that are made of counts of labels, for correcting them by labels given by people."""
        return None

    answer_formats: Mapping[str, str] = {}
    """The formats of published predictions that :meth:`read_answers` reads: name to one-line description."""

    def answer_files(self, path: Path, form: str) -> Sequence[Path]:
        """The files that :meth:`read_answers` reads for ``path``, in a fixed order. Raises SourceError where there are none."""
        return (path,)

    def read_answers(self, path: Path, form: str, left_out: Callable[[str, str], None]) -> Iterator[ImportedAnswer]:
        """The answers in a file of published predictions, in the format ``form``, one of ``answer_formats``.

        ``left_out`` is told of every row that cannot be used, or only in part: which, and why. Raises SourceError where it is
        no such file.
        """
        raise SpecError(f"{self.name} has no published predictions; import JSON lines of id and answer.")

    def write_training(self, build: Build, out: Path, *, seed: int, validation_share: float) -> Mapping[str, int]:
        """Write files for fine-tuning into the folder ``out``; the number of rows in each."""
        raise SpecError(f"{self.name} has no training split.")


@dataclass(frozen=True, slots=True)
class LabelMetrics:
    """Figures that are made of counts of labels.

    Each of ``of`` is a function of an array of counts of shape (..., conditions, labels) and returns shape (...); counts
    need not be whole numbers, and nan is undefined.
    """

    conditions: tuple[str, ...]
    labels: tuple[str, ...]
    of: Mapping[str, Callable[[Any], Any]]
    unparsed: str | None = None
    """The label that an answer with nothing to label counts as, where the benchmark's tables count such answers."""


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """An answer that was produced elsewhere, with the verdicts that were published with it."""

    instance: Instance
    answer: str
    verdicts: tuple[Verdict, ...] = ()


_BENCHMARKS = {
    "cmc-bench": "benchmarks.cmc_bench:CMCBench",
    "clash": "benchmarks.clash:Clash",
    "mmkc-bench": "benchmarks.mmkc_bench:MMKCBench",
    "pope": "benchmarks.pope:Pope",
    "crosscheck-bench": "benchmarks.crosscheck_bench:CrossCheckBench",
    "contra4": "benchmarks.contra4:Contra4",
}


def benchmark_names() -> tuple[str, ...]:
    """The registered benchmarks' names."""
    return tuple(_BENCHMARKS)


def get_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; imported only now. Raises SpecError with the nearest right name."""
    if name not in _BENCHMARKS:
        raise SpecError(f"there is no benchmark {name!r}; {did_you_mean(name, _BENCHMARKS)}")
    module, _, attribute = _BENCHMARKS[name].partition(":")
    made: Benchmark = getattr(import_module(module), attribute)()
    return made
