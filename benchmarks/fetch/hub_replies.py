"""Replies of the Hugging Face Hub that are acted on, as far as they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError, field_validator

from benchmarks.fetch.web_requests import OddReplyError
from benchmarks.untrusted.file_names import LONGEST_PATH

Sha1 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Size = Annotated[int, Field(ge=0, lt=2**63)]

_LONGEST_LICENCE = 200
_SMALLEST_CHUNK = 2**20
"""Bytes of the parts in which a large file may have to be sent; smaller ones would mean too many requests."""

T = TypeVar("T")


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class RepositoryInfo(_Reply):
    """A repository at its newest commit."""

    sha: Sha1
    tags: Any = None

    @property
    def licence(self) -> str:
        """The licences on the card, or ""."""
        tags = self.tags if isinstance(self.tags, list) else []
        licences = (tag.removeprefix("license:") for tag in tags if isinstance(tag, str) and tag.startswith("license:"))
        return ", ".join(dict.fromkeys(licences))[:_LONGEST_LICENCE]


class Visibility(_Reply):
    """Visibility of a repository: ``private`` if only its owner sees it."""

    private: bool


class LargeFile(_Reply):
    """The content of a file outside git."""

    oid: Sha256
    size: Size


class TreeFile(_Reply):
    """A file in the listing of a repository."""

    type: Literal["file"]
    path: str
    size: Size
    oid: Sha1
    lfs: LargeFile | None = None


class TreeFolder(_Reply):
    """Anything else in the listing of a repository."""

    type: str


_TAGS = ("file", "other")


def _tag(entry: Any) -> str:
    return _TAGS[0] if isinstance(entry, dict) and entry.get("type") == "file" else _TAGS[1]


Tree = TypeAdapter(
    list[Annotated[Annotated[TreeFile, Tag(_TAGS[0])] | Annotated[TreeFolder, Tag(_TAGS[1])], Discriminator(_tag)]]
)


class _UploadMode(_Reply):
    path: Annotated[str, Field(max_length=LONGEST_PATH)]
    mode: Literal["regular", "lfs"] = Field(alias="uploadMode")
    is_ignored: Literal[False] = Field(alias="shouldIgnore")


class Preupload(_Reply):
    """The way in which each file is to be sent; none is left out."""

    files: list[_UploadMode]


class _Action(_Reply):
    href: Annotated[str, Field(pattern=r"^https?://")]
    header: dict[str, Any] = {}

    @field_validator("header")
    @classmethod
    def _check_chunks(cls, header: dict[str, Any]) -> dict[str, Any]:
        size = str(header.get("chunk_size", _SMALLEST_CHUNK))
        if not (size.isdecimal() and len(size) < 19 and int(size) >= _SMALLEST_CHUNK):
            raise ValueError("chunk_size")
        return header


class _Actions(_Reply):
    upload: _Action
    verify: _Action | None = None


class _LargeFileActions(LargeFile):
    actions: _Actions | None = None


class LargeFiles(_Reply):
    """The addresses to which large files are to be sent."""

    objects: list[_LargeFileActions]


class Created(_Reply):
    """A repository that was created."""

    url: str


class Checked(_Reply):
    """Errors and warnings about a card."""

    errors: list[Any]
    warnings: list[Any]


class Commit(_Reply):
    """A commit."""

    url: str = Field(alias="commitUrl")
    oid: Sha1 = Field(alias="commitOid")


def reply(kind: type[T] | TypeAdapter[T], value: Any) -> T:
    """Return the value of a reply as ``kind``. Raises OddReplyError, which names the first odd field and no value of it."""
    adapter: TypeAdapter[T] = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        fields = [part for part in first["loc"] if isinstance(part, str) and part not in _TAGS]
        raise OddReplyError(f"its field {fields[-1]} is missing or odd" if fields else "it has another form") from error
