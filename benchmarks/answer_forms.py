"""Required forms of answers, and forms that are scored or stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer form: one of these words and nothing else."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JSONObject:
    """An answer form: a JSON object.

    ``properties`` maps each field to the values it may have; an empty tuple allows any string. All fields are required, in
    this order.
    """

    properties: Mapping[str, tuple[str, ...]]

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema."""
        return {
            "type": "object",
            "properties": {
                name: {"type": "string", "enum": list(words)} if words else {"type": "string"}
                for name, words in self.properties.items()
            },
            "required": list(self.properties),
            "additionalProperties": False,
        }


@dataclass(frozen=True, slots=True)
class Likelihood:
    """An answer form without generation: the answer is the word that the model finds the most likely start of its answer."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """An answer form that restricts nothing: the answer is generated, and candidates are scored beside it.

    Where the answer states one of ``values``, each of them is scored in its place, after the words before it; otherwise as the
    beginning of an answer, as the ``abstention`` always is. An empty value is not scored.
    """

    values: tuple[str, ...]
    abstention: str


@dataclass(frozen=True, slots=True)
class Stated:
    """An answer form without a model: the answer is ``text``, which follows from earlier steps.

    ``scores`` are the logs of the shares of earlier answers that chose each option, or each of :data:`CANDIDATES`; None for a
    share of 0.
    """

    text: str
    scores: tuple[float | None, ...] = ()


CANDIDATES = ("image", "text", "abstention", "answer")
"""The scores of an open question: of the image's value, the text's value, an abstention, and the generated answer."""

Form = Choice | JSONObject
AnyForm = Form | Likelihood | Candidates | Stated
