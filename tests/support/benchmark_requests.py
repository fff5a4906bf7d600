"""Requests of the benchmarks, on drawn pictures or, where available, on real charts and photographs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import MediaError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Part, Request, Text
from mlx_backends.base import Backend
from tests.support.charts import draw_sources
from tests.support.data.clash import published_folder, published_row
from tests.support.data.mmkc_bench import whole_folder


class RequestFactory:
    """Factory of requests; ``folder`` holds their media."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._builds: list[Build] = []

    def path(self, media: Media) -> Path:
        for build in self._builds:
            with suppress(MediaError):
                return build.media_path(media)
        raise AssertionError(f"{media.name} is in none of the builds")

    def cmc_bench(self, groups: int, real: Path | None = None) -> list[Request]:
        """The first examples of CMC-Bench, each under all its conditions; of ``real`` ChartQA, where that is given."""
        if real is not None:
            return self._requests("cmc-bench", [("chartqa", str(real))], groups)
        draw_sources(self._folder / "charts")
        sources = [
            ("chartqa", str(self._folder / "charts" / "chartqa")),
            ("mmmu", str(self._folder / "charts" / "mmmu")),
        ]
        return self._requests("cmc-bench", sources, groups)

    def clash(self, groups: int, real: Path | None = None) -> list[Request]:
        """CLASH: both tasks on both captions; of ``real`` SugarCrepe beside its COCO photographs, where that is given."""
        if real is not None:
            return self._requests("clash", [("sugar-crepe", str(real))], groups)
        source = published_folder(self._folder / "clash-source", [published_row(n) for n in range(1, groups + 1)])
        return self._requests("clash", [("published", str(source))], groups)

    def mmkc_bench(self, groups: int) -> list[Request]:
        """The first examples of MMKC-Bench, each under all its settings and in both formats."""
        source = whole_folder(self._folder / "mmkc-source", 1)
        return self._requests("mmkc-bench", [("published", str(source))], groups)

    def mmkc(self, count: int) -> list[Request]:
        """Text, image, text, image, text, image: the images of an example in two orders, and one of them twice."""
        images = list(dict.fromkeys(part for part in self._parts() if isinstance(part, Media)))
        requests = []
        for number in range(count):
            a, b, c = (images[(number + n) % len(images)] for n in range(3))
            for name, pictures in (("one", (a, b, c)), ("other", (a, c, b)), ("twice", (a, b, a))):
                parts: list[Part] = [Text(f"Evidence on topic {number}. ")]
                for place, image in enumerate(pictures):
                    parts += [Text(f"Passage {place + 1} says {number * place}. "), image]
                message = Message("user", (*parts, Text("Which is right?")))
                requests.append(Request(f"mmkc-{number}-{name}", 0, (message,), _decoding(number)))
        return requests

    def texts(self) -> Iterator[str]:
        """All the texts of the benchmarks that have been built."""
        for part in self._parts():
            if isinstance(part, Text):
                yield part.text

    def _parts(self) -> Iterator[Part]:
        for build in self._builds:
            benchmark = get_benchmark(build.benchmark)
            for instance in benchmark.instances(build, next(iter(benchmark.prompt_sets))):
                yield from instance.parts

    def _requests(self, name: str, sources: Sequence[tuple[str, str]], groups: int) -> list[Request]:
        benchmark = get_benchmark(name)
        build = benchmark.build(sources, self._folder / name, BuildOptions())
        self._builds.append(build)
        instances = list(benchmark.instances(build, next(iter(benchmark.prompt_sets))))
        chosen = list(islice(dict.fromkeys(instance.group for instance in instances), groups))
        return [
            Request(f"{name} {item.id}", 0, (Message("user", item.parts),), _decoding(number))
            for number, item in enumerate(instances)
            if item.group in chosen
        ]


def second_stage(first: Sequence[Request], answers: dict[str, Generation]) -> list[Request]:
    """MM-CoT's second question, after the answer to the first."""
    question = Message("user", (Text("So what is the answer? Answer in one word."),))
    return [
        replace(
            request,
            step=1,
            messages=(*request.messages, Message("assistant", (Text(answers[request.id].text),)), question),
        )
        for request in first
    ]


def answers(backend: Backend, requests: Sequence[Request]) -> dict[str, Generation]:
    """Return the generations of ``backend`` by request id, with as many requests at once as it takes."""
    waiting, generations, under_way = list(requests), {}, 0
    while waiting or under_way:
        while waiting and under_way < backend.capacity:
            backend.submit(waiting.pop(0))
            under_way += 1
        for generation in backend.step():
            generations[generation.request_id] = generation
            under_way -= 1
    return generations


def _decoding(number: int) -> Decoding:
    """Answers of different lengths, so that rows end and join at any time."""
    return Decoding(max_tokens=3 + number * 7 % 11, max_pixels=40_000)
