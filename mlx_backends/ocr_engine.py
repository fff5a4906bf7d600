"""Reader without a vision-language model: text recognition and a rule, as ``ocr:image``, ``ocr:text`` and ``ocr:flag``.

RapidOCR finds the lines of text in a picture with the weights of PP-OCRv6 that its package contains; nothing is downloaded.
:mod:`mlx_backends.chart_rule` takes the answer from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.errors import ExtraMissingError, ModelError, SpecError
from benchmarks.prompt_template import shipped_templates
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.protocols.remedy_protocols import ANSWER_AGAIN, CHECK, COMPARE, READ_FIRST
from benchmarks.values import compare
from benchmarks.vocabulary import NOT_SHOWN, SHOWN_TEXT, Generation, Media, Request, Text
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.chart_rule import Line, answer_on_chart, value_in_text
from mlx_backends.core.error_text import one_line
from mlx_backends.core.image_inputs import keyed_image
from mlx_backends.core.lru_cache import LRUCache
from mlx_backends.models.model_modalities import IMAGES_ONLY
from mlx_backends.models.weight_files import files_digest
from mlx_backends.options import LoadOptions

PREFIX = "ocr:"
READERS: Mapping[str, str] = {
    PREFIX + "image": "the printed number in the image, or without an image the text's",
    PREFIX + "text": "the text's number, or else the printed one in the image",
    PREFIX + "flag": "the printed number in the image, or that the text states another one",
}
"""The model names, and what each answers where its sources disagree."""

_LIBRARIES = ("rapidocr", "onnxruntime")
_WEIGHTS = {
    "Det.model_path": "PP-OCRv6_det_small.onnx",
    "Rec.model_path": "PP-OCRv6_rec_small.onnx",
}
_MOST_ELONGATED = 8
"""The longest side of a picture over its shortest; a narrower one is laid on white, because its shortest side is scaled up."""
_CACHE_BYTES = 2**26


class OCREngine(Engine):
    """Text recognition with a rule; needs the extra ``ocr``."""

    def describe(self, model: str) -> EngineInfo:
        """Describe the reader ``model``. Raises SpecError for an unknown name, ExtraMissingError without the extra."""
        if model not in READERS:
            raise SpecError(f"there is no reader {model!r}; known are {', '.join(READERS)}.")
        try:
            versions = {name: version(name) for name in _LIBRARIES}
        except PackageNotFoundError as error:
            raise ExtraMissingError(
                f"{model} needs the library {error.name}; install it with `pip install 'rashomon[ocr]'`."
            ) from None
        files = [*_weights().values()]
        return EngineInfo(
            "ocr",
            model,
            weights=files_digest(files),
            needs_device=False,
            versions=versions,
            weights_bytes=sum(file.stat().st_size for file in files),
            takes=IMAGES_ONLY,
        )

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        return OCRBackend(self.describe(model), media)


class OCRBackend(Backend):
    """A reader: takes the question of a request, and looks for its value in the images and in the rest of the text.

    See :func:`choose` for what it answers. A request without a question, which is no benchmark's, has no text source.
    """

    def __init__(self, info: EngineInfo, media: MediaPath) -> None:
        self.info = info
        self._media = media
        self._request: Request | None = None
        self._read: Any = None
        self._lines: LRUCache[Sequence[Line]] = LRUCache(_CACHE_BYTES)

    def submit(self, request: Request) -> None:
        if self._request is not None:
            raise RuntimeError("the reader already holds a request")
        self._request = request

    def step(self) -> Sequence[Generation]:
        request, self._request = self._request, None
        return [] if request is None else [self._generation(request)]

    def cancel(self, request_id: str) -> None:
        if self._request is not None and self._request.id == request_id:
            self._request = None

    def _generation(self, request: Request) -> Generation:
        start = perf_counter()
        try:
            answer = self._answer(request)
        except Exception as error:  # of any library that a hostile picture reaches
            return Generation(request.id, "", "error", error=one_line(error))
        return Generation(request.id, answer, "stop", prefill_s=perf_counter() - start, decode_s=0.0)

    def _answer(self, request: Request) -> str:
        question, text, images = split_prompt(request)
        stated = value_in_text(question, text)
        if stated and self.info.model == PREFIX + "text":
            return stated
        charts = (self._lines_of(image, request.decoding.max_pixels) for image in images)
        read = next(filter(None, (answer_on_chart(question, lines) for lines in charts)), "")
        return choose(self.info.model, question, read, stated, has_image=bool(images))

    def _lines_of(self, image: Media, max_pixels: int | None) -> Sequence[Line]:
        key, open_image = keyed_image(self._media(image), image, max_pixels)
        return self._lines.get(key, lambda: self._recognise(open_image()), lambda lines: 1_000 * len(lines) + 1_000)

    def _recognise(self, image: Any) -> Sequence[Line]:
        if self._read is None:
            self._read = _reader()
        result = self._read(_widened(image))
        if result.boxes is None:
            return []
        return [
            Line(str(text), *(float(n) for n in (*box.min(axis=0), *box.max(axis=0))))
            for box, text in zip(result.boxes, result.txts, strict=True)
        ]


def split_prompt(request: Request) -> tuple[str, str, Sequence[Media]]:
    """Return the question of a prompt, the text that it shows as a source, and its images.

    The text is all that is neither the question nor wording of a protocol or a shipped prompt set. It is empty where the
    request's references say that no text is shown.
    """
    parts = [part for message in request.messages if message.role == "user" for part in message.parts]
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    question = request.question or text
    images = [part for part in parts if isinstance(part, Media)]
    if not _shows_text(request.references):
        return question, "", images
    lines = text.replace(question, "", 1).splitlines()
    return question, "\n".join(line for line in lines if line.strip() not in _wording()), images


def _shows_text(references: Mapping[str, Sequence[str]]) -> bool:
    is_source = "text" in references or SHOWN_TEXT in references
    return not references or (is_source and "text" not in references.get(NOT_SHOWN, ()))


@cache
def _wording() -> frozenset[str]:
    """Return the lines of protocols and shipped prompt sets that have no source in them."""
    texts = [text for template in shipped_templates().values() for text in (template.user, template.alone)]
    lines = (
        "\n".join((READ_FIRST, COMPARE, CHECK, ANSWER_AGAIN, *texts)).replace("{abstention}", ABSTENTION).splitlines()
    )
    return frozenset(line.strip() for line in lines if "{" not in line)


def choose(model: str, question: str, read: str, stated: str, *, has_image: bool) -> str:
    """Return the answer of the reader ``model``, given the value ``read`` in the image and the one that the text ``stated``.

    Each is empty where there is none, and so is the answer: it says no abstention, which would count as flagging a conflict.
    ``ocr:flag`` flags values that :func:`benchmarks.values.compare` finds different.
    """
    if model == PREFIX + "flag" and read and stated and compare(read, stated, question).verdict == "different":
        return ABSTENTION
    if model == PREFIX + "image" and has_image:
        return read
    return (stated or read) if model == PREFIX + "text" else (read or stated)


def _weights() -> Mapping[str, Path]:
    """Return the files of the package that hold weights, by the option that names each. Raises ModelError if one is missing."""
    folder = Path(str(distribution("rapidocr").locate_file("rapidocr/models")))
    files = {option: folder / name for option, name in _WEIGHTS.items()}
    if not all(file.is_file() for file in files.values()):
        raise ModelError(
            "the installed rapidocr lacks the weights that readers need; install it again with `pip install 'rashomon[ocr]'`."
        )
    return files


def _reader() -> Any:
    from rapidocr import RapidOCR

    # Its classifier of directions turns lines by 180 degrees, and so reads "999" as "666".
    options = {"Global.log_level": "critical", "Global.use_cls": False}
    return RapidOCR(params={**{option: str(file) for option, file in _weights().items()}, **options})


def _widened(image: Any) -> Any:
    """Return a PIL image, on white if it is too narrow."""
    from PIL import Image

    shortest = -(-max(image.size) // _MOST_ELONGATED)
    if min(image.size) >= shortest:
        return image
    canvas = Image.new("RGB", (max(image.width, shortest), max(image.height, shortest)), "white")
    canvas.paste(image, (0, 0))
    return canvas
