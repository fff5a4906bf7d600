"""Declarations of keys: the types of their values, what they say to people, and how they are read.

Nothing heavy is imported here, so that the command line starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from benchmarks.number_ranges import NumberRange

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class TextLength(NamedTuple):
    """Bounds of a text's length, as a pydantic annotation."""

    low: int | None = None
    high: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.str_schema(min_length=self.low, max_length=self.high)


class StrictFlag:
    """Pydantic annotation of a flag that is true or false, not 1 or "yes"."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.bool_schema(strict=True)


class NameList:
    """Pydantic annotation of a list of names: a single one may stand for itself, and a repeated one counts once."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_as_list, handler(source))


def _as_list(value: Any) -> Any:
    value = [value] if isinstance(value, str) else value
    return list(dict.fromkeys(value)) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value


Flag = Annotated[bool, StrictFlag()]
Names = Annotated[tuple[Annotated[str, TextLength(low=1)], ...], NameList()]
FolderPath = Annotated[str, TextLength(high=4096)]
"""A folder. The length limit makes pydantic reject text that cannot be written to the spec's file."""


class Key(NamedTuple):
    """Texts about a key of a spec.

    Attributes:
        help: The help of its option; "" for a key without one.
        metavar: The word for the option's value.
        label: The label of its field on the form of a new run; "" for the key itself.
        hint: The hint beside the field.
        example: The text in the empty field; None for ``default``.
        default: The default in words, as Markdown.
        meaning: The meaning for the documentation, as Markdown; "" for a key in the row of the one before.
        newer: True for a key that a spec leaves out where it has its default, because earlier releases did not have it.
    """

    help: str = ""
    metavar: str | None = None
    label: str = ""
    hint: str = ""
    example: str | None = None
    default: str = "none"
    meaning: str = ""
    newer: bool = False


@dataclass_transform(kw_only_default=True)
class Keys:
    """Base of the classes of keys. A field without a value here has its default in :mod:`app.run_spec`."""


class DeclaredKey(NamedTuple):
    """A key of a spec with its section, "" for none, and what its declaration says."""

    name: str
    section: str
    annotation: Any
    key: Key

    @property
    def number_range(self) -> NumberRange | None:
        """The range of a number; None for another type."""
        return next((fact for fact in _facts(self.annotation) if isinstance(fact, NumberRange)), None)

    @property
    def choices(self) -> tuple[str, ...]:
        """The only texts that are allowed; none where any is, or where the type is not text."""
        return next((get_args(fact) for fact in _facts(self.annotation) if get_origin(fact) is Literal), ())

    @property
    def is_flag(self) -> bool:
        """True for a value that is true or false."""
        return any(fact is bool for fact in _facts(self.annotation))

    @property
    def is_list(self) -> bool:
        """True for a list of names."""
        return any(isinstance(fact, NameList) for fact in _facts(self.annotation))

    @property
    def label(self) -> str:
        """The label of the key's field on the form of a new run."""
        return self.key.label or self.name.replace("_", " ")

    @property
    def example(self) -> str:
        """The text in the empty field."""
        return self.key.default.strip("`") if self.key.example is None else self.key.example


def _facts(annotation: Any) -> Iterator[Any]:
    """Yield the parts of an annotation: types and metadata, the outer ones first."""
    for part in get_args(annotation):
        yield part
        yield from _facts(part)


def keys_of(*classes: type[Keys], section: str = "") -> dict[str, DeclaredKey]:
    """Return the keys of classes by name, those of a ``section`` of the spec, without those that only a stored spec has."""
    return {
        name: DeclaredKey(name, section, annotation, key)
        for keys in classes
        for name, annotation in get_type_hints(keys, include_extras=True).items()
        for key in getattr(annotation, "__metadata__", ())
        if isinstance(key, Key)
    }
