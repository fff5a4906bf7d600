"""Baselines made of a run's own answers to each source alone, as the models of runs: ``baseline:RULE:MODEL``."""

from __future__ import annotations

from benchmarks.errors import ModelError
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.imported_engine import IMPORTED
from mlx_backends.models.model_modalities import ALL_MODALITIES
from mlx_backends.options import LoadOptions
from mlx_backends.policy_engine import PREFIX

BASELINE = "baseline:"
"""The prefix of the model name of a baseline."""

ORACLE = "oracle"
"""The rule that knows which source is right: a ceiling, which nobody can use."""

WITHOUT_REQUESTS = (IMPORTED, BASELINE)
"""The prefixes of models that are requested nothing: their answers were made elsewhere."""


def baseline_name(rule: str, model: str) -> str:
    """Return the model name of a rule on the answers of ``model``."""
    return f"{BASELINE}{rule}:{model}"


def split_baseline(model: str) -> tuple[str, str]:
    """Return the rule and the model of a baseline's model name; the rule is empty for any other model."""
    if not model.startswith(BASELINE):
        return "", model
    rule, _, source = model.removeprefix(BASELINE).partition(":")
    return rule, source


def is_policy(model: str) -> bool:
    """Return whether a model name is that of a policy, which reads no input, or of a baseline made of its answers."""
    return split_baseline(model)[1].startswith(PREFIX)


def is_oracle(model: str) -> bool:
    """Return whether a model name is that of an oracle."""
    return split_baseline(model)[0] == ORACLE


def is_model(model: str) -> bool:
    """Return whether a model name is that of no policy and no oracle, so that it can be recommended."""
    return not (is_policy(model) or is_oracle(model))


class BaselineEngine(Engine):
    """Describes a baseline, and answers nothing itself."""

    def describe(self, model: str) -> EngineInfo:
        return EngineInfo("baseline", model, device="none", needs_device=False, takes=ALL_MODALITIES)

    def refusal(self, model: str) -> str:
        return f"{model} is made of a run's answers; make it with `rashomon baselines RUN`."

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        raise ModelError(self.refusal(model))
