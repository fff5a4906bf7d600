"""Keys of a spec, each declared once: type, default, option, field on the form of a new run, and row of the documentation.

``app.run_spec`` validates specs with the classes of this module, ``app.cli.cli_options`` makes options of them, the form its
fields, and ``docs/write_spec_keys.py`` the table. Nothing heavy is imported here, so that the command line starts quickly.
"""

from functools import cache
from typing import Annotated, Any, Literal

from app.key_declarations import DeclaredKey, Flag, FolderPath, Key, Keys, Names, TextLength, keys_of
from benchmarks import number_ranges as ranges

RESTARTS = 2
"""The default number of restarts of a worker that runs out of memory without answering in between. Not part of a run's
identity."""

Part = Literal["open", "final"]
Score = Literal["generate", "likelihood"]
ProtocolName = Literal["direct", "read-then-compare", "self-consistency", "verify"]


class BatchKeys(Keys):
    """The first keys of a spec: what is run."""

    benchmark: Annotated[
        str,
        Key(
            help="The benchmark to run; `rashomon benchmarks` lists them.",
            metavar="NAME",
            default="required",
            meaning="see `rashomon benchmarks`",
        ),
    ]
    model: Annotated[
        Names,
        Key(
            help="A folder, the Hub id of a fetched model, a remote model such as openai:NAME, or policy:NAME. Repeatable.",
            metavar="ID",
            label="another",
            example="folder, ORG/NAME, openai:NAME; Enter adds",
            default="required",
            meaning="a folder, a Hub id in the cache, `policy:NAME`, or a [remote model](remote.md) such as `openai:NAME`; a "
            "list makes one run for each",
        ),
    ]
    adapter: Annotated[
        FolderPath | None,
        Key(
            help="Apply the adapter in this folder to the models; --model ID+FOLDER applies it to a single one.",
            metavar="FOLDER",
            meaning='the folder of an [adapter](training.md#use-the-adapter) for every model; `model = ["ID", "ID+FOLDER"]` '
            "names one for a single model",
            newer=True,
        ),
    ] = None
    data: Annotated[
        FolderPath | None,
        Key(
            help="A build's folder, or a question set as SET or SET@NUMBER; default: the build in the workspace.",
            label="build folder",
            example="default: the workspace's build",
            default="the workspace's build",
            meaning="the folder of the build; in a file, relative to the file",
        ),
    ] = None
    prompt_set: Annotated[
        Names,
        Key(
            help="A prompt set; `rashomon benchmarks` and `rashomon prompts` list them. Or a file of yours. Repeatable.",
            metavar="NAME",
            default="the benchmark's first",
            meaning="a list makes one run for each; a file's path, or [a shipped set](prompts.md)",
        ),
    ] = ()
    prompt: Any
    """The content of the prompt set of its name, as a run has it that was made from a file."""


class SelectionKeys(Keys):
    """The judges of a run, and the instances that it asks."""

    judge: Annotated[
        Names,
        Key(
            help="A judge, or first(RULE, MODEL); `rashomon judges` lists them. Repeatable; tables show the first one's labels.",
            metavar="NAME",
            label="another judge",
            example="a model, openai:NAME; Enter adds it",
            default="the benchmark's first",
            meaning="a [judge's name or a model](judges.md); with a list, every judge labels each answer, and tables show the "
            "first one's labels",
        ),
    ]
    undecided_by: Annotated[str | None, Key(newer=True)] = None
    """The judge by rule for whose undecided answers alone the models among the judges are asked; None: for every answer."""
    conditions: Annotated[
        Names,
        Key(
            help="Only these conditions, separated by commas; `rashomon benchmarks` lists them. without-sources adds those that "
            "leave sources out.",
            metavar="C,C",
            default="all; `vanilla` for CrossCheck-Bench",
            meaning="use only these",
        ),
    ] = ()
    strata: Annotated[
        dict[str, Names],
        Key(
            help="Only instances in these strata. Repeatable.",
            metavar="KEY=V,V",
            default="all",
            meaning='only instances of these strata: `type = ["temporal", "factual"]` in a `[strata]` table, or `--strata '
            "type=temporal,factual`",
        ),
    ] = {}  # noqa: RUF012 - pydantic copies it
    limit: Annotated[
        Annotated[int, ranges.LIMIT] | None,
        Key(
            help="Only this many examples, stratified; each keeps all its conditions.",
            hint="examples; each keeps its conditions",
            default="all",
            meaning="the number of examples, at least 1, stratified, each with all its conditions; the same ones every time",
        ),
    ] = None
    part: Annotated[Part | None, Key(newer=True)] = None
    """The part of a question set that is asked: all but the rows held out for a final decision, or these; None: all rows."""
    seed: Annotated[
        Annotated[int, ranges.SEED],
        Key(
            help="Seed for the choice of examples and for sampled answers; default 0.",
            hint="for examples and sampling",
            default="0",
            meaning="decides the subset and every sampled token",
        ),
    ] = 0


class AnswerKeys(Keys):
    """The name of a run, and the way in which its questions are answered."""

    name: Annotated[
        str | None,
        Key(
            help="The run's name, such as nightly-{date}; {date}, {time} and {model} stand for theirs. Default: a name derived "
            "from the spec, the same each time.",
            hint="of the run",
            example="derived from spec",
            default="derived from the spec and the data",
            meaning="the run's folder: letters, digits, `.`, `_`, `-`, and the [placeholders](#a-new-run-every-night) `{date}`, "
            "`{time}`, `{model}`",
        ),
    ]
    exact: Annotated[
        Flag,
        Key(
            help="Compute each answer separately: no batching, no caches.",
            default="false",
            meaning="computes each answer by itself, with [no batch and no cache](exactness.md)",
        ),
    ] = False
    fresh: Annotated[
        Flag,
        Key(
            help="Ask every request anew, in a new run if the last one is finished; reuse no answer of another run.",
            default="false",
            meaning="asks everything [in a new run](#a-new-run-every-night), and [reuses no answer](#answers-of-other-runs) of "
            "another one",
            newer=True,
        ),
    ] = False
    score: Annotated[
        Score,
        Key(
            help="Generate answers; or score options by likelihood, and generate with likelihoods where there are none.",
            default="`generate`",
            meaning="`likelihood`: the answer is the [likeliest of a question's options](backends.md#the-likeliest-option); "
            "answers to open questions are generated, with [likelihoods](confidence.md)",
        ),
    ] = "generate"
    protocol: Annotated[
        ProtocolName,
        Key(
            help="Spend more calls on each answer: read the sources first, let samples vote, or check the answer; default: "
            "direct.",
            hint="verify, read-then-compare, …",
            default="`direct`",
            meaning="`read-then-compare`, `self-consistency` (a vote of `samples` answers) or `verify`: [remedies at "
            "inference](remedies.md)",
            newer=True,
        ),
    ] = "direct"
    """The benchmark's own protocol, or a remedy that wraps it."""
    samples: Annotated[
        Annotated[int, ranges.SAMPLES] | None,
        Key(
            help="How many answers vote in self-consistency; default 5.",
            metavar="N",
            hint="that vote, with self-consistency",
            default="5",
            newer=True,
        ),
    ] = None
    repeats: Annotated[
        Annotated[int, ranges.REPEATS],
        Key(
            help="Ask every instance N times, each time with another seed; needs a temperature above 0. Default 1.",
            metavar="N",
            hint="of every instance, with other seeds",
            default="1",
            meaning="asks every instance this many times, at most 100, each time with another seed: "
            "[repeats](#repeats-of-sampled-answers)",
            newer=True,
        ),
    ] = 1
    kv_bits: Annotated[
        Annotated[int, ranges.KV_BITS] | None,
        Key(
            help="Quantise the key-value cache of a model that MLX runs to 8 or 4 bits; default: not quantised.",
            metavar="N",
            hint="8 or 4: quantises the key-value cache",
            meaning="8 or 4: [quantises the key-value cache](exactness.md#a-quantised-key-value-cache) of a model that MLX runs",
            newer=True,
        ),
    ] = None
    """The bits to which the model's key-value cache is quantised; None: not at all. Judges are not affected."""


class ExecutionKeys(Keys):
    """The keys of a run that decide none of its answers."""

    restarts: Annotated[
        Annotated[int, ranges.RESTARTS],
        Key(
            help="How often to restart a worker that ran out of memory without answering in between; default 2.",
            metavar="N",
            hint="of a worker that ran out of memory",
            default="2",
            meaning="how often a worker that ran out of memory is restarted in a row, without an answer in between; 0 to 100",
        ),
    ] = RESTARTS


class ClusterKeys(ExecutionKeys):
    """The same with the key that is not part of a run: a run that somebody else made never names a cluster."""

    workers: Annotated[
        Annotated[str, TextLength(high=300)] | None,
        Key(
            help="Let the nodes of a Ray cluster answer: ray://HOST:10001, or ray for the one of RAY_ADDRESS or a new one here.",
            metavar="CLUSTER",
            meaning="the [Ray cluster](cluster.md) whose nodes answer",
            newer=True,
        ),
    ] = None


class DecodingKeys(Keys):
    """The section ``decoding``."""

    max_tokens: Annotated[
        Annotated[int, ranges.MAX_TOKENS],
        Key(
            help="The most tokens of an answer; default: the benchmark's.",
            label="max new tokens",
            hint="of an answer",
            example="",
            default="256; CrossCheck-Bench 512",
            meaning="the longest answer; a truncated one is judged, and counted as truncated",
        ),
    ] = 256
    temperature: Annotated[
        Annotated[float, ranges.TEMPERATURE],
        Key(
            help="Sampling temperature, 0 for greedy decoding; default: the benchmark's.",
            hint="0 is greedy",
            example="",
            default="0; CrossCheck-Bench 0.7",
            meaning="0 is greedy",
        ),
    ] = 0.0
    top_p: Annotated[
        Annotated[float, ranges.TOP_P],
        Key(
            help="Nucleus sampling threshold; default: the benchmark's.",
            hint="nucleus sampling",
            example="",
            default="1; CrossCheck-Bench 0.9",
            meaning="nucleus sampling, above 0 and at most 1",
        ),
    ] = 1.0
    max_pixels: Annotated[
        Annotated[int, ranges.MAX_PIXELS] | None,
        Key(
            help="Scale larger images down to this many pixels.",
            hint="larger images are scaled down",
            meaning="scales larger images down to this many pixels, at least 1024",
        ),
    ] = None


class ApiKeys(Keys):
    """The section ``api``: limits and prices of remote engines."""

    token_ceiling: Annotated[
        Annotated[int, ranges.TOKEN_CEILING] | None,
        Key(
            help="Remote models: the most tokens to use, for each run and each judge.",
            hint="of each run and judge",
            meaning="the most tokens or money that remote models may use, for the answers of each run and for each of its "
            "judges; use before the run was resumed counts too",
        ),
    ] = None
    cost_ceiling: Annotated[
        Annotated[float, ranges.COST_CEILING] | None,
        Key(
            help="Remote models: the most to spend; needs both prices.", hint="of each run and judge; needs the prices"
        ),
    ] = None
    input_price: Annotated[
        Annotated[float, ranges.PRICE] | None,
        Key(
            help="Remote models: price of a million input tokens, in any currency.",
            hint="of a million tokens",
            example="",
            meaning="prices of a million tokens, in the currency of the ceiling",
        ),
    ] = None
    output_price: Annotated[
        Annotated[float, ranges.PRICE] | None,
        Key(help="Remote models: price of a million output tokens.", hint="of a million tokens", example=""),
    ] = None
    concurrency: Annotated[
        Annotated[int, ranges.CONCURRENCY],
        Key(
            help="Remote models: the most calls at a time; default 8.",
            hint="simultaneous calls of remote models",
            default="8",
            meaning="calls at a time, seconds per call, calls per request",
        ),
    ] = 8
    timeout: Annotated[
        Annotated[float, ranges.TIMEOUT],
        Key(help="Remote models: seconds before a call times out; default 120.", default="120 s"),
    ] = 120.0
    attempts: Annotated[
        Annotated[int, ranges.ATTEMPTS],
        Key(help="Remote models: how often to try a failing call; default 6.", default="6"),
    ] = 6


SECTION_KEYS: dict[str, type[Keys]] = {"decoding": DecodingKeys, "api": ApiKeys}
"""The keys of each section of a spec."""


@cache
def spec_keys() -> dict[str, DeclaredKey]:
    """Return all keys by name, in the order of the documentation."""
    keys = keys_of(BatchKeys, SelectionKeys, AnswerKeys, ClusterKeys)
    sections = (keys_of(classes, section=section) for section, classes in SECTION_KEYS.items())
    return {name: key for part in (keys, *sections) for name, key in part.items()}
