"""JSON of the lists: models, benchmarks, judges, prompt sets, data, question sets and the checks of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlx_backends.model_family_status import FamilyStatus
from mlx_backends.model_recommendation import PromptSize


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """A policy, which answers without a model."""

    name: str
    description: str
    takes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderEntry:
    """A reader of printed numbers: text recognition and a rule. ``problem`` says why it cannot run; empty if it can."""

    name: str
    description: str
    takes: tuple[str, ...]
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedEntry:
    """A model of the Hugging Face cache. ``problem`` says why it cannot run; ``fits`` is null if that is unknown."""

    name: str
    kind: str | None
    quantisation: str | None
    bytes: int | None
    fits: bool | None
    takes: tuple[str, ...]
    family: FamilyStatus | None
    note: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A model to fetch. ``memory`` is what it needs in bytes; ``smallest_mac`` the gigabytes of the smallest Mac for it."""

    name: str
    base: str
    quantisation: str
    benchmarks: tuple[str, ...]
    bytes: int
    memory: int
    smallest_mac: int | None
    licence: str | None
    released: str | None
    checked: str | None
    """The day on which the entry was compared with public records."""
    caution: str
    fetched: bool
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """The models, by where they come from."""

    policies: tuple[PolicyEntry, ...]
    readers: tuple[ReaderEntry, ...]
    cached: tuple[CachedEntry, ...]
    catalog: tuple[CatalogEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedModel:
    """A recommended model, the bytes that it needs for the prompt, and why."""

    model: CatalogEntry
    needs: int
    exact: bool
    """False where a request's part of ``needs`` is a flat allowance."""
    family: FamilyStatus
    reason: str
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecommendation:
    """The models to run next with ``available`` bytes of memory, the best first. ``memory`` names that memory."""

    available: int
    memory: str
    prompt: PromptSize
    models: tuple[RecommendedModel, ...]


ModelsResult = ModelList | ModelRecommendation
"""Result of ``rashomon models``; with ``--for`` or ``--data`` the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupValue:
    """A value of a paper's setup, and where the paper says so."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupEntry:
    """The setup of a benchmark's paper: values by the keys of a spec, its judges, and how it differs from the paper."""

    values: dict[str, SetupValue]
    judges: tuple[str, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkEntry:
    """A benchmark. The mappings are from names to descriptions. ``setup`` is there if the benchmark was named."""

    name: str
    title: str
    paper: str
    conditions: tuple[str, ...]
    without_sources: tuple[str, ...]
    """The conditions that leave sources out."""
    labels: tuple[str, ...]
    prompt_sets: dict[str, str]
    sources: dict[str, str]
    answer_formats: dict[str, str]
    tasks: dict[str, str]
    capabilities: dict[str, str]
    build: str | None
    """The folder of its build, relative to the workspace."""
    state: str
    setup: SetupEntry | None


BenchmarkList = tuple[BenchmarkEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheckEntry:
    """The last check of a judge: ``right`` of its ``labelled`` verdicts on ``answers``, at a time in seconds since 1970."""

    at: float
    answers: int
    labelled: int
    right: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleJudgeEntry:
    """A judge by rule."""

    name: str
    version: str
    benchmarks: tuple[str, ...]
    description: str
    check: JudgeCheckEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricEntry:
    """A rubric by which any model judges."""

    name: str
    version: str
    benchmark: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedModelJudge:
    """A judging model or panel that was checked, by its id."""

    id: str
    check: JudgeCheckEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeList:
    """The judges by rule, the rubrics for models, and the models and panels that were checked."""

    rules: tuple[RuleJudgeEntry, ...]
    rubrics: tuple[RubricEntry, ...]
    checked: tuple[CheckedModelJudge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSetEntry:
    """A prompt set, as in its file. ``problem`` says why a file cannot be used; the other values are then null."""

    name: str
    problem: str
    digest: str | None = None
    description: str | None = None
    rationale: str | None = None
    system: str | None = None
    user: str | None = None
    alone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """A message of a prompt; a medium is its modality in angle brackets."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPreview:
    """The prompts of an example, by condition. ``digest`` is null for a benchmark's own prompt set."""

    prompt_set: str
    digest: str | None
    prompts: dict[str, tuple[PromptMessage, ...]]


PromptsResult = tuple[PromptSetEntry, ...] | PromptSetEntry | PromptPreview
"""Result of ``rashomon prompts``: the list, one prompt set, or with ``--benchmark`` its prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataEntry:
    """The data that a benchmark is built from. ``state`` is fetched, begun, none or not fetched by Rashomon."""

    benchmark: str
    description: str
    state: str
    folder: str
    """Relative to the workspace."""
    files: int | None
    bytes: int | None


DataList = tuple[DataEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVersionEntry:
    """A version of a question set. ``made`` is an ISO 8601 time; ``instances`` is null for a damaged one."""

    number: int
    digest: str
    made: str
    folder: str
    instances: int | None
    problem: str | None
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEntry:
    """A question set; of one that cannot be read, its name and ``problem`` alone. ``table`` is the name of its file."""

    name: str
    problem: str | None = None
    benchmark: str | None = None
    table: str | None = None
    examples: int = 0
    final_examples: int = 0
    """The examples of the newest version that are held out for a final decision."""
    versions: tuple[SetVersionEntry, ...] = ()


SetList = tuple[SetEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCheck:
    """A check of this machine or of a run. With ``ok`` true, ``fix`` is advice; it is empty if there is none."""

    check: str
    ok: bool
    message: str
    fix: str


MachineChecks = tuple[MachineCheck, ...]
