"""RunSpec: one validated model for the command line, TOML files and the TUI."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app.system.paths import exists, typed_path
from benchmarks.base import Decoding, Protocol, did_you_mean, digest, get_benchmark
from benchmarks.errors import SpecError
from judges.base import find_judge
from mlx_backends.pytorch.spec import split
from mlx_backends.remote.options import RemoteOptions

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def _as_list(value: Any) -> Any:
    value = [value] if isinstance(value, str) else value
    # Saying a thing twice asks for it once.
    return list(dict.fromkeys(value)) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value


M = TypeVar("M", bound=BaseModel)
Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_list)]


RESTARTS = 2
"""How often, without an answer in between, a worker that died for want of memory is started again. Not part of what a run is."""

Score = Literal["generate", "likelihood"]
Place = Annotated[str, Field(max_length=4096)]
"""A folder. It is written into the spec's file, so it must be text: where there is a bound, pydantic sees to that."""
RunName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]


class DecodingSpec(BaseModel):
    """How answers are decoded; see :class:`benchmarks.base.Decoding`. What is left open is the benchmark's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tokens: int = Field(default=256, ge=1)
    temperature: float = Field(default=0.0, ge=0, le=10, allow_inf_nan=False)
    top_p: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    max_pixels: int | None = Field(default=None, ge=1024)


class ApiSpec(BaseModel):
    """On what terms remote engines are used; see :class:`mlx_backends.remote.options.RemoteOptions`. Not part of what
    a run is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_ceiling: int | None = Field(default=None, ge=1)
    cost_ceiling: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    input_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    concurrency: int = Field(default=8, ge=1, le=256)
    timeout: float = Field(default=120.0, gt=0, le=3600, allow_inf_nan=False)
    attempts: int = Field(default=6, ge=1, le=100)

    def terms(self, replies: Path | None) -> RemoteOptions:
        """The terms, with replies kept in the file ``replies``. Raises SpecError for a ceiling on money without prices."""
        if self.cost_ceiling is not None and (self.input_price is None or self.output_price is None):
            raise SpecError("cost_ceiling needs input_price and output_price, for a million tokens each.")
        return RemoteOptions(
            replies=replies,
            max_tokens=self.token_ceiling,
            max_cost=self.cost_ceiling,
            input_price=self.input_price,
            output_price=self.output_price,
            concurrency=self.concurrency,
            timeout=self.timeout,
            attempts=self.attempts,
        )


class BatchSpec(BaseModel):
    """What a spec file or the command line says; lists of models or prompt sets become several runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    model: Words = Field(min_length=1)
    data: Place | None = None
    prompt_set: Words = ()
    judge: Words = ()
    conditions: Words = ()
    strata: dict[str, Words] = {}
    limit: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    name: RunName | None = None
    exact: bool = False
    score: Score = "generate"
    restarts: int = Field(default=RESTARTS, ge=0, le=100)
    decoding: DecodingSpec = DecodingSpec()
    api: ApiSpec = ApiSpec()

    def runs(self) -> list[RunSpec]:
        """One RunSpec for each model and prompt set, each checked against what there is.

        Raises SpecError naming what does not exist and the nearest thing that does.
        """
        for _, sentence in self.mismatches():
            raise SpecError(sentence)
        benchmark = get_benchmark(self.benchmark)
        judges = self.judge or benchmark.judges[:1]
        for word in judges:
            find_judge(word, benchmark)
        pairs = product(self.model, self.prompt_set or (next(iter(benchmark.prompt_sets)),))
        shared = self.model_dump(exclude={"model", "prompt_set", "judge"})
        shared["conditions"] = self.conditions or benchmark.default_conditions
        paper = {key: value for key, value in asdict(benchmark.decoding).items() if key in DecodingSpec.model_fields}
        shared["decoding"] = {**paper, **self.decoding.model_dump(exclude_unset=True)}
        return [RunSpec(**shared, model=model, prompt_set=prompts, judge=judges) for model, prompts in pairs]

    def mismatches(self) -> Iterator[tuple[str, str]]:
        """What of the spec does not fit its benchmark: key and sentence, without looking at models, judges or data."""
        try:
            benchmark = get_benchmark(self.benchmark)
        except SpecError as error:
            yield "benchmark", str(error)
            return
        for key, kind, words, known in (
            ("prompt_set", "prompt set", self.prompt_set, tuple(benchmark.prompt_sets)),
            ("conditions", "condition", self.conditions, benchmark.conditions),
        ):
            for word in words:
                if word not in known:
                    yield key, f"there is no {kind} {word!r}; {did_you_mean(word, known)}"
        count = len(self.model) * max(1, len(self.prompt_set))
        if self.name and count > 1:
            yield (
                "name",
                f"name = {self.name!r} can only name one run, and this spec makes {count}; leave it out.",
            )


class RunSpec(BaseModel):
    """What one run is: one model, one prompt set, one build of one benchmark."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    model: str
    prompt_set: str
    data: Place | None = None
    judge: Words = ("match",)
    conditions: Words = ()
    strata: dict[str, Words] = {}
    limit: int | None = None
    seed: int = 0
    name: RunName | None = None
    exact: bool = False
    """Whether each answer is computed by itself: nothing together, nothing reused."""
    score: Score = "generate"
    """Whether answers are generated, or the likeliest of an instance's options is taken ("likelihood")."""
    restarts: int = RESTARTS
    decoding: DecodingSpec = DecodingSpec()
    api: ApiSpec = ApiSpec()

    def run_name(self, data_digest: str) -> str:
        """The run folder's name: ``name``, or one that the same spec and data always give again."""
        if self.name:
            return self.name
        left_out = {"judge", "data", "name", "restarts", "api"}
        if not self.exact:
            left_out.add("exact")  # as runs before there was the word were named
        if self.score == "generate":
            left_out.add("score")
        decides = self.model_dump(mode="json", exclude=left_out)
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", Path(self.model).name if "/" in self.model else self.model).strip("-.")
        return f"{self.benchmark}-{slug[:48]}-{self.prompt_set}-{digest([decides, data_digest])[:8]}"

    def to_decoding(self) -> Decoding:
        """The decoding that requests carry; the run's seed is its seed."""
        return Decoding(seed=self.seed, **self.decoding.model_dump())

    def protocol(self) -> Protocol:
        """How the benchmark's instances become model calls in this run."""
        from benchmarks.protocols import LikelihoodProtocol

        benchmark, decoding = get_benchmark(self.benchmark), self.to_decoding()
        return LikelihoodProtocol(benchmark, decoding) if self.score == "likelihood" else benchmark.protocol(decoding)

    def what_decides(self) -> dict[str, Any]:
        """What of the spec decides the answers, flat, as kept with a run and compared when it is resumed."""
        return {
            "benchmark": self.benchmark,
            "model": self.model,
            "prompt set": self.prompt_set,
            "protocol": self.protocol().name,
            "conditions": list(self.conditions),
            "strata": {k: list(v) for k, v in self.strata.items()},
            "limit": self.limit,
            **({"exact": True} if self.exact else {}),
            **{key.replace("_", " "): value for key, value in asdict(self.to_decoding()).items()},
        }


SECTIONS: dict[str, type[BaseModel]] = {"decoding": DecodingSpec, "api": ApiSpec}
"""The tables of a spec, with the keys in each."""


def load_spec(path: Path | None, overrides: Mapping[str, Any]) -> BatchSpec:
    """The spec in a TOML file with the command line's values over it.

    A relative ``data`` or model folder in the file is relative to the file, and one on the command line to the current
    folder; both become absolute, so that a run can be resumed from anywhere. Raises SpecError naming the key at fault.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise SpecError(f"cannot read the spec {path}: {error.strerror}.") from error
        except (ValueError, RecursionError) as error:
            raise SpecError(f"{path} is not valid TOML: {error}.") from error
        if isinstance(values.get("data"), str):
            values["data"] = str(typed_path(values["data"], path.parent))
        for key in ("model", "judge"):
            if key in values:
                values[key] = _models(values[key], path.parent)
    return parse(BatchSpec, with_said(values, overrides), str(path) if path else "the command line")


def with_said(values: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """A spec's ``values`` with those ``said`` over them, each in the section it belongs to; None says nothing.

    Models and judges that are folders below the current one become absolute.
    """
    whole = dict(values)
    for key, value in {**said, **{key: _models(said.get(key), Path()) for key in ("model", "judge")}}.items():
        if value is None:
            continue
        section = next((name for name, model in SECTIONS.items() if key in model.model_fields), None)
        if section is None:
            whole[key] = value
        elif isinstance(whole.get(section, {}), dict):
            whole[section] = {**whole.get(section, {}), key: value}
    return whole


def _models(given: Any, base: Path) -> Any:
    """The models with those that are folders below ``base`` made absolute."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list):
        return given
    return [_absolute(m, base) if isinstance(m, str) and m else m for m in given]


def _absolute(model: str, base: Path) -> str:
    before, place, behind = split(model)
    return f"{before}{typed_path(place, base)}{behind}" if place and exists(base / place) else model


def parse(model: type[M], values: Any, where: str) -> M:
    """``values`` as ``model``; a value that does not fit becomes one SpecError sentence."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        every = error.errors(include_url=False)
        # A misspelt key explains the one that is missing.
        first = next((each for each in every if each["type"] == "extra_forbidden"), every[0])
        key = _key(first)
        if first["type"] == "extra_forbidden":
            fields = SECTIONS.get(str(first["loc"][0]), model).model_fields
            raise SpecError(f"{where}: unknown key {key!r}; {did_you_mean(str(first['loc'][-1]), fields)}") from error
        if first["type"] == "missing":
            raise SpecError(
                f"{where}: {key!r} is missing; say it in the spec or as --{key.replace('_', '-')}."
            ) from error
        raise SpecError(f"{where}: {key} = {first['input']!r}: {_wrong(first)}.") from error


def problems(model: type[BaseModel], values: Any) -> dict[str, str]:
    """What does not fit, by key (a section's with its own: ``decoding.top_p``), in a few words; empty where all fits."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        return {_key(each): _wrong(each) for each in reversed(error.errors(include_url=False))}
    return {}


def _key(error: ErrorDetails) -> str:
    return ".".join(str(part) for part in error["loc"])


_IN_WORDS = {
    "int_parsing": "give a whole number",
    "int_from_float": "give a whole number",
    "int_parsing_size": "give a smaller number",
    "float_parsing": "give a number",
    "string_unicode": "it holds half a character, which is no text",
}


def _wrong(error: ErrorDetails) -> str:
    if error["type"] in ("too_short", "missing"):
        return "name at least one"
    if error["type"] == "string_pattern_mismatch":
        return "use letters, digits, '.', '_' and '-', at most 80, beginning with a letter or digit"
    if error["type"] in _IN_WORDS:
        return _IN_WORDS[error["type"]]
    return error["msg"][:1].lower() + error["msg"][1:]


def load_judges(names: Sequence[str]) -> list[str]:
    """Judges or models as typed, each once, with those that are folders below the current one made absolute."""
    return list(dict.fromkeys(_models(list(names), Path())))
