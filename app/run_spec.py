"""RunSpec: one validated model for the command line, TOML files and the TUI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from app.key_declarations import FolderPath, Keys, Names
from app.run_name_patterns import NAME, NAME_ADVICE, PATTERN, Moment, model_slug, name_at
from app.spec_keys import (
    AnswerKeys,
    ApiKeys,
    BatchKeys,
    ClusterKeys,
    DecodingKeys,
    ExecutionKeys,
    SelectionKeys,
    spec_keys,
)
from app.typed_names import absolute_models, absolute_prompt_files, with_adapter, with_members
from app.validation_advice import advice, refused_key
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.number_ranges import STORED, TYPED, shortened
from benchmarks.prompt_template import Prompts, PromptTemplate, find_template
from benchmarks.protocols.protocols import DirectProtocol, LikelihoodProtocol, Protocol, SystemProtocol
from benchmarks.protocols.remedy_protocols import (
    READ,
    REMEDIES,
    SAMPLES,
    VERIFY,
    VOTE,
    VOTE_TEMPERATURE,
    ReadThenCompare,
    SelfConsistency,
    Verify,
)
from benchmarks.protocols.repeats import RepeatedProtocol
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.file_names import name_key
from benchmarks.untrusted.safe_files import read_regular
from benchmarks.untrusted.safe_toml import parse_toml
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import WITHOUT_SOURCES, Decoding, digest
from judges.judge_registry import find_judges
from mlx_backends.options import RemoteOptions

if TYPE_CHECKING:
    from benchmarks.base import Benchmark


M = TypeVar("M", bound=BaseModel)
LARGEST_SPEC = 1 << 20
"""The maximum size of a spec's file, in bytes."""

RunName = Annotated[str, Field(pattern=NAME, max_length=80)]
NamePattern = Annotated[str, Field(pattern=PATTERN, max_length=560)]
"""A name or a pattern. The length is checked first, as the search takes seconds in a text of 100,000 characters."""


_NEWER = {"prompt", *(name for name, declared in spec_keys().items() if declared.key.newer)}


class DecodingSpec(BaseModel, DecodingKeys):
    """Decoding settings; see :class:`benchmarks.vocabulary.Decoding`. Unset values are the benchmark's."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ApiSpec(BaseModel, ApiKeys):
    """Limits and prices of remote engines; see :class:`mlx_backends.options.RemoteOptions`.

    They are not part of a run's identity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def remote_options(self, replies: Path | None) -> RemoteOptions:
        """Return the options with replies cached in the file ``replies``. Raises SpecError for a cost ceiling without prices."""
        if self.cost_ceiling is not None and (self.input_price is None or self.output_price is None):
            raise SpecError("cost_ceiling needs prices; set input_price and output_price, for a million tokens each.")
        alike = self.model_dump(exclude={"token_ceiling", "cost_ceiling"})
        return RemoteOptions(replies, max_tokens=self.token_ceiling, max_cost=self.cost_ceiling, **alike)


class _Spec(BaseModel):
    """Base of specs: they are frozen, and leave out newer keys that have their default, as earlier releases wrote them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: PromptTemplate | None = None
    """The content of a prompt set that is not the benchmark's own, so that neither a file nor a release changes it."""
    decoding: DecodingSpec = DecodingSpec()
    api: ApiSpec = ApiSpec()

    @model_serializer(mode="wrap")
    def _without_newer_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        values: dict[str, Any] = serialize(self)
        return {key: value for key, value in values.items() if key not in _NEWER or value != fields[key].default}


class BatchSpec(_Spec, ClusterKeys, AnswerKeys, SelectionKeys, BatchKeys):  # the fields of the last base come first
    """The contents of a spec file or command line; lists of models or prompt sets become several runs."""

    model: Names = Field(min_length=1)
    judge: Names = ()
    name: NamePattern | None = None

    def runs(self, moment: Moment | None = None) -> list[RunSpec]:
        """Return a RunSpec for each model and prompt set; ``moment`` is that of their names, by default the present one.

        Raises SpecError for a name that does not exist, with the closest one that does.
        """
        for _, sentence in self.mismatches():
            raise SpecError(sentence)
        benchmark = get_benchmark(self.benchmark)
        judges = self.judge or benchmark.judges[:1]
        find_judges(judges, benchmark, self.undecided_by)
        models = [with_adapter(model, self.adapter) for model in self.model]
        pairs = product(models, self.prompt_set or (next(iter(benchmark.prompt_sets)),))
        shared = self.model_dump(exclude={"model", "adapter", "prompt_set", "prompt", "judge", "workers"})
        shared["conditions"] = benchmark.conditions_of(self.conditions)
        defaults = {key: value for key, value in asdict(benchmark.decoding).items() if key in DecodingSpec.model_fields}
        if self.protocol == VOTE:
            shared["samples"] = self.samples or SAMPLES
            defaults["temperature"] = defaults["temperature"] or VOTE_TEMPERATURE
        shared["decoding"] = {**defaults, **self.decoding.model_dump(exclude_unset=True)}
        moment = moment or Moment.now()
        return [
            RunSpec(
                **{**shared, "name": self._name(model, moment)},
                model=model,
                **self._prompts(prompt_set, benchmark),
                judge=judges,
            )
            for model, prompt_set in pairs
        ]

    def _name(self, model: str, moment: Moment) -> str | None:
        """Return the name of a model's run. Raises SpecError if the pattern gives none."""
        if self.name is None:
            return None
        name = name_at(self.name, moment, model)
        if not re.fullmatch(NAME, name):
            raise SpecError(f"name = {self.name!r} gives {name!r}; {NAME_ADVICE}.")
        return name

    def _prompts(self, name: str, benchmark: Benchmark) -> dict[str, Any]:
        """Return the keys of a RunSpec for one of the prompt sets. Raises SpecError."""
        template = self.prompt if self.prompt is not None and name == self.prompt.name else None
        if template is None and name in benchmark.prompt_sets:
            return {"prompt_set": name}
        template = template or find_template(name, benchmark.prompt_sets)
        template.check_fits(benchmark.name, benchmark.placeholders)
        # What models do not see is no part of a run.
        return {"prompt_set": template.name, "prompt": replace(template, description="", rationale="")}

    def mismatches(self) -> Iterator[tuple[str, str]]:
        """Yield what does not fit the benchmark, as key and sentence. Models, judges and data are not checked."""
        try:
            benchmark = get_benchmark(self.benchmark)
        except SpecError as error:
            yield "benchmark", str(error)
            return
        for name in self.prompt_set:
            try:
                self._prompts(name, benchmark)
            except SpecError as error:
                yield "prompt_set", str(error)
        known = (*benchmark.conditions, *([WITHOUT_SOURCES] if benchmark.without_sources else []))
        for name in self.conditions:
            if name not in known:
                yield "conditions", f"there is no condition {name!r}; {did_you_mean(name, known)}"
        yield from self._protocol_mismatches(benchmark)
        count = len(self.model) * max(1, len(self.prompt_set))
        if self.name and len({name_key(name_at(self.name, Moment("", ""), model)) for model in self.model}) < count:
            yield (
                "name",
                f"name = {self.name!r} can only name one run, but this spec makes {count}; remove it"
                f"{'' if '{model}' in self.name else ', or add {model} if only the models differ'}.",
            )

    def _protocol_mismatches(self, benchmark: Benchmark) -> Iterator[tuple[str, str]]:
        if self.protocol in REMEDIES and not isinstance(benchmark.protocol(Decoding()), DirectProtocol):
            yield (
                "protocol",
                f"{benchmark.name} has a protocol of its own, which no other can wrap; leave --protocol out.",
            )
        if self.protocol in REMEDIES and self.score == "likelihood":
            yield (
                "protocol",
                f"{self.protocol} generates its answers; leave out either --protocol or --score likelihood.",
            )
        if self.samples is not None and self.protocol != VOTE:
            yield "samples", f"samples are the answers that vote; add --protocol {VOTE}, or leave --samples out."
        if self.protocol == VOTE and "temperature" in self.decoding.model_fields_set and not self.decoding.temperature:
            yield (
                "temperature",
                f"greedy answers are all the same; give {VOTE} a --temperature above 0, or leave it out.",
            )
        elif self.repeats > 1 and self.score == "likelihood":
            yield (
                "repeats",
                "likelihoods are the same in each repeat; leave out either --repeats or --score likelihood.",
            )
        elif self.repeats > 1 and self.protocol != VOTE and not self._temperature(benchmark):
            yield (
                "repeats",
                "greedy answers are the same in each repeat; add a --temperature above 0, or leave --repeats out.",
            )

    def _temperature(self, benchmark: Benchmark) -> float:
        chosen = "temperature" in self.decoding.model_fields_set
        return self.decoding.temperature if chosen else benchmark.decoding.temperature


class _OneRun(Keys):
    """The first fields of a run's spec."""

    benchmark: str
    model: str
    prompt_set: str
    prompt: PromptTemplate | None
    data: FolderPath | None = None


class RunSpec(_Spec, ExecutionKeys, AnswerKeys, SelectionKeys, _OneRun):
    """One run: one model, one prompt set and one build of one benchmark."""

    judge: Names = ("match",)
    name: RunName | None = None

    def run_name(self, data_digest: str) -> str:
        """Return the run folder's name: ``name``, or a name derived from the spec and the data."""
        if self.name:
            return self.name
        excluded = {"judge", "undecided_by", "data", "name", "restarts", "api"}
        if not self.exact:
            excluded.add("exact")  # keeps the names of runs from before this key existed
        if self.score == "generate":
            excluded.add("score")
        identity = self.model_dump(mode="json", exclude=excluded)
        return f"{self.benchmark}-{model_slug(self.model)}-{self.prompt_set}-{digest([identity, data_digest])[:8]}"

    @property
    def unnamed(self) -> RunSpec:
        """The spec without a name of its own."""
        return self.model_copy(update={"name": None})

    def to_decoding(self) -> Decoding:
        """Return the decoding of the run's requests, with the run's seed."""
        return Decoding(seed=self.seed, **self.decoding.model_dump())

    @property
    def prompts(self) -> Prompts:
        """The prompt set: the name of one of the benchmark's own, or the content of another."""
        return self.prompt or self.prompt_set

    def to_protocol(self) -> Protocol:
        """Return the protocol that turns the benchmark's instances into model calls."""
        return self._one_answer() if self.repeats == 1 else RepeatedProtocol(self._one_answer())

    def _one_answer(self) -> Protocol:
        """Return the protocol of the first repeat."""
        benchmark, decoding = get_benchmark(self.benchmark), self.to_decoding()
        protocol = benchmark.protocol(decoding)
        if self.prompt is not None and (system := self.prompt.system_text(benchmark.abstention_phrase)):
            protocol = SystemProtocol(protocol, system)
        if self.protocol == READ:
            return ReadThenCompare(protocol)
        if self.protocol == VERIFY:
            return Verify(protocol)
        if self.protocol == VOTE:
            return SelfConsistency(protocol, benchmark.options, self.samples or SAMPLES)
        if self.score == "generate":
            return protocol
        return LikelihoodProtocol(protocol, benchmark.options, benchmark.abstention_phrase)

    def identity(self) -> dict[str, Any]:
        """Return the settings that determine the answers, flat. They are stored with a run and compared when it is resumed."""
        return {
            "benchmark": self.benchmark,
            "model": self.model,
            "prompt set": self.prompt_set,
            **({"prompt digest": self.prompt.digest} if self.prompt is not None else {}),
            "protocol": self.to_protocol().name,
            "conditions": list(self.conditions),
            "strata": {k: list(v) for k, v in self.strata.items()},
            "limit": self.limit,
            **({"part": self.part} if self.part is not None else {}),
            **({"exact": True} if self.exact else {}),
            **({"fresh": True} if self.fresh else {}),
            **({"kv bits": self.kv_bits} if self.kv_bits is not None else {}),
            **({"repeats": self.repeats} if self.repeats > 1 else {}),
            **{key.replace("_", " "): value for key, value in asdict(self.to_decoding()).items()},
        }


SECTIONS: dict[str, type[BaseModel]] = {"decoding": DecodingSpec, "api": ApiSpec}
"""The sections of a spec, with the model of each."""


def load_spec(path: Path | None, overrides: Mapping[str, Any]) -> BatchSpec:
    """Load a spec from a TOML file, with values of the command line overriding it.

    Relative folders of data, models and adapters in the file are relative to the file; those on the command line are relative
    to the current folder. Both become absolute, so that a run can be resumed from anywhere.

    Raises SpecError naming the wrong key.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = parse_toml(read_regular(path, limit=LARGEST_SPEC))
        except OSError as error:
            raise SpecError(f"cannot read the spec {path}: {error.strerror}; name a TOML file.") from error
        except ValueError as error:
            raise SpecError(f"{path} is not valid TOML: {error}; correct the file.") from error
        if isinstance(values.get("data"), str):
            values["data"] = str(typed_path(values["data"], path.parent))
        if isinstance(values.get("adapter"), str):
            values["adapter"] = str(typed_path(values["adapter"], path.parent))
        values = with_members(values)
        for key in ("model", "judge"):
            if key in values:
                values[key] = absolute_models(values[key], path.parent)
        if "prompt_set" in values:
            values["prompt_set"] = absolute_prompt_files(values["prompt_set"], path.parent)
    return parse_spec(values, overrides, str(path) if path else "the command line")


def parse_spec(values: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> BatchSpec:
    """Return the spec of ``values`` with those of the command line; ``source`` names it in errors. Raises SpecError."""
    return parse(BatchSpec, with_overrides(values, overrides), source)


def with_overrides(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec's ``values`` with overrides, each in its section; None overrides nothing.

    Models and judges that are folders below the current one become absolute.
    """
    merged_values, overrides = dict(values), with_members(overrides)
    if overrides.get("judge") is not None:
        merged_values.pop("undecided_by", None)
    models = {key: absolute_models(overrides.get(key), Path()) for key in ("model", "judge")}
    prompts = {"prompt_set": absolute_prompt_files(overrides.get("prompt_set"), Path())}
    for key, value in {**overrides, **models, **prompts}.items():
        if value is None:
            continue
        section = next((name for name, model in SECTIONS.items() if key in model.model_fields), None)
        if section is None:
            merged_values[key] = value
        elif isinstance(merged_values.get(section, {}), dict):
            merged_values[section] = {**merged_values.get(section, {}), key: value}
    return merged_values


def parse_stored(model: type[M], values: Any, where: str) -> M:
    """Validate the ``values`` of a spec that this or an earlier release has stored. Raises SpecError."""
    return parse(model, values, where, context=STORED)


def parse(model: type[M], values: Any, where: str, *, context: str | None = None) -> M:
    """Validate ``values`` as ``model``. Raises SpecError with one sentence about the first wrong value.

    ``context`` is that of :mod:`benchmarks.number_ranges`.
    """
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A misspelt key explains the missing one.
        first = next((detail for detail in errors if detail["type"] == "extra_forbidden"), errors[0])
        key = refused_key(first)
        if first["type"] == "extra_forbidden":
            fields = SECTIONS.get(str(first["loc"][0]), model).model_fields
            raise SpecError(f"{where}: unknown key {key!r}; {did_you_mean(str(first['loc'][-1]), fields)}") from error
        if first["type"] == "missing":
            raise SpecError(
                f"{where}: {key!r} is missing; set it in the spec or with --{key.replace('_', '-')}."
            ) from error
        raise SpecError(f"{where}: {key} = {shortened(first['input'])}: {advice(first)}.") from error


def validation_problems(model: type[BaseModel], values: Any) -> dict[str, str]:
    """Return what is wrong with ``values`` as typed, in a few words by key (``decoding.top_p`` within a section)."""
    try:
        model.model_validate(values, context=TYPED)
    except ValidationError as error:
        return {refused_key(detail): advice(detail) for detail in reversed(error.errors(include_url=False))}
    return {}
