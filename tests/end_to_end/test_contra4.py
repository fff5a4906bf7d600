"""Contra4 through the real command line: real mixed rows, a captioner, a construction by a model, an embedding model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media
from tests.app.commands.running.test_batch_command import states
from tests.support.command import Rashomon
from tests.support.contra4_writer import writes
from tests.support.data.contra4 import COCO, PLAIN, copy_rows, mixed_rows, real_rows, row, write_source
from tests.support.data.small import write_picture
from tests.support.fault_server import FaultServer
from tests.support.remote import KEYS
from tests.support.saved_page import read_saved_page
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm
from tests.support.tiny_qwen3_omni import build_tiny_omni

TEXTS = [
    "Answer the question Which scene is louder? by selecting one of the following options: Option A: a dog. Answer: Option"
]


@real_rows
@pytest.mark.slow
def test_real_mixed_rows_run_on_captions(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    build_tiny_lm(tmp_path / "tiny", TEXTS, quantise=True)
    output = rashomon.json("build", "contra4", "--source", mixed_rows(tmp_path / "rows"))
    assert output["manifest"]["with_all_media"] == 33
    options = (
        "--batch",
        "--benchmark",
        "contra4",
        "--model",
        tmp_path / "tiny",
        "--max-tokens",
        "4",
        "--display",
        "none",
    )
    rashomon.run(*options, "--conditions", "gold-captions", "--name", "r", "--judge", "choice", "--judge", "official")
    assert states(rashomon)["r"] == ("done", 33, 33)
    report = rashomon.json("show", "r")["tables"]
    tables = {table["name"]: table for table in report}
    rows = [row["label"] for row in tables["main"]["rows"] if "(paper)" not in row["label"]]
    blind = ["without looking (ours) / gold-captions", "chance (ours) / gold-captions"]
    assert rows == ["tiny / gold-captions", "tiny / gold-captions (official)", *blind]
    assert {row["cells"]["all_all"]["n"] for row in tables["main"]["rows"][:2]} == {33}
    assert [row["cells"]["audio_plus_3d"]["n"] for row in tables["combinations"]["rows"]] == [3, 3]
    output = rashomon.run("export", "r", "--format", "svg,html", "--out", tmp_path / "out").stdout
    assert "categories.svg, combinations.svg, report.html, samples.html" in output


@real_rows
@pytest.mark.slow
def test_real_media_appear_with_the_sample_and_in_the_report(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "contra4", "--source", mixed_rows(tmp_path / "rows"))
    build = Build.open(rashomon.workspace / "benchmarks" / "contra4")
    instances = [item for item in get_benchmark("contra4").instances(build, "official") if item.condition == "media"]
    answers = "".join(json.dumps({"id": item.id, "answer": "Scene B"}) + "\n" for item in instances)
    (tmp_path / "answers.jsonl").write_text(answers)
    options = ("--benchmark", "contra4", "--model", "B", "--name", "r", "--display", "none")
    rashomon.run("import", tmp_path / "answers.jsonl", *options)
    shows_all = next(item for item in instances if item.strata["size"] == "4")
    lines = [
        line for line in rashomon.run("show", "r", "--sample", shows_all.id).stdout.splitlines() if "medium" in line
    ]
    assert len(lines) == 4
    for kind, fact in (("audio", " Hz, "), ("3D model", " points"), ("image", " pixels"), ("video", " frames, ")):
        assert sum(f": {kind}, " in line and fact in line for line in lines) == 1
    rashomon.run("export", "r", "--format", "html", "--out", tmp_path / "out")
    saved = read_saved_page((tmp_path / "out" / "samples.html").read_text("utf-8"))
    assert len(saved.media) == len(
        {part.sha256 for item in instances for part in item.parts if isinstance(part, Media)}
    )
    assert all(medium["preview"] in saved.media for item in saved.instances for medium in item["media"])


@real_rows
@pytest.mark.slow
def test_real_mixed_rows_run_on_available_media(tmp_path: Path) -> None:
    """33 rows of real sounds, videos, 3D models and COCO pictures, in every combination of two, three and four."""
    rashomon = Rashomon(tmp_path)
    sees, hears = tmp_path / "sees", tmp_path / "hears"
    build_tiny_vlm(sees, TEXTS, quantise=False)
    build_tiny_omni(hears, TEXTS)
    build = rashomon.run("build", "contra4", "--source", mixed_rows(tmp_path / "rows"), "--rendered", "--json").stdout
    manifest = json.loads(build)["result"]["manifest"]
    assert (manifest["with_all_media"], manifest["rendered"]) == (33, 33)
    options = ("--batch", "--benchmark", "contra4", "--max-tokens", "4", "--display", "plain")
    expected = {
        # Images and videos as they are; 3D as views; sounds by captions alone.
        "sees": (("media", 3), ("rendered", 12), ("gold-captions", 33)),
        # Images, videos and sounds as they are; with 3D as views it is asked about every row.
        "hears": (("media", 12), ("rendered", 33)),
    }
    says = {
        "sees": "51 of 99 not asked: the model takes no audio (42), no 3D (21)",
        "hears": "21 of 66 not asked: the model takes no 3D (21)",
    }
    for name, counts in expected.items():
        which = ("--conditions", ",".join(condition for condition, _ in counts), "--name", name)
        out = rashomon.run(*options, "--model", tmp_path / name, *which).stdout
        assert f"{name}: {says[name]}" in out
        total = sum(count for _, count in counts)
        assert states(rashomon)[name] == ("done", total, total)
        (failures,) = rashomon.json("show", name, "--table", "failures")["tables"]
        cells = {line["label"].partition(" / ")[2]: line["cells"] for line in failures["rows"]}
        for condition, count in counts:
            figures = cells[condition]
            assert (figures["answered"], figures["error"], figures["not_asked"]) == (count, 0, 33 - count)
        (combinations,) = rashomon.json("show", name, "--table", "combinations")["tables"]
        print(name, [(line["label"], {k: v["n"] for k, v in line["cells"].items()}) for line in combinations["rows"]])
    report = rashomon.json("compare", "sees", "hears")
    (changes,) = [table for table in report["tables"] if table["name"] == "changes"]
    shared = {line["label"]: line["cells"]["shared"] for line in changes["rows"]}
    assert {row.rpartition(" / ")[2]: count for row, count in shared.items()} == {
        "all": 15,
        "media": 3,
        "rendered": 12,
    }, "two runs are compared by what both were asked"


@real_rows
@pytest.mark.slow
def test_published_rows_run_on_available_media(tmp_path: Path) -> None:
    """Of the 2,335 rows 118 scenes are pictures that are here; every row has a scene of something that is not."""
    rashomon = Rashomon(tmp_path)
    build_tiny_lm(tmp_path / "tiny", TEXTS, quantise=True)
    rows = copy_rows(tmp_path / "rows", 2335)
    source = ("--source", f"published={rows}", "--source", f"coco_val={COCO / 'val2017'}")
    manifest = rashomon.json("build", "contra4", *source)["manifest"]
    assert manifest["samples"] == 2335
    assert manifest["scenes"]["Image"] == {"there": 118, "missing": 1902}
    assert manifest["with_all_media"] == 0
    options = (
        "--batch",
        "--benchmark",
        "contra4",
        "--model",
        tmp_path / "tiny",
        "--max-tokens",
        "2",
        "--display",
        "none",
    )
    message = rashomon.run(*options, code=2).stderr
    assert "no condition 'media'; known are gold-captions, closed-book, gold-captions-options-only." in message
    rashomon.run(*options, "--conditions", "gold-captions", "--limit", "200", "--name", "r")
    assert states(rashomon)["r"] == ("done", 200, 200)


@pytest.mark.slow
def test_model_captions_pictures_and_answers_from_captions(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    build_tiny_vlm(tmp_path / "tiny", TEXTS, quantise=False)
    pictures = [("image", "mine", f"{number}.png", f"A number, {number}") for number in range(4)]
    rows = [row("one", pictures[:2]), row("two", pictures[1:], "C"), row("three", pictures, "D")]
    folder = write_source(tmp_path / "rows", rows)
    for _, source, name, _ in pictures:
        write_picture(folder / source / str(name), int(str(name)[0]))
    built = ("build", "contra4", "--source", folder, "--captioner", f"image={tmp_path / 'tiny'}")
    manifest = rashomon.json(*built)["manifest"]
    assert manifest["captioners"] == {"Image": "tiny"}
    captioned = manifest["captioned"]
    options = (
        "--batch",
        "--benchmark",
        "contra4",
        "--model",
        tmp_path / "tiny",
        "--max-tokens",
        "4",
        "--display",
        "none",
    )
    rashomon.run(*options, "--conditions", "media,captions", "--name", "r")
    assert captioned == 3
    assert states(rashomon)["r"] == ("done", 6, 6)
    tables = {table["name"]: table for table in rashomon.json("show", "r")["tables"]}
    assert tables["captions"]["rows"][0]["cells"]["image"]["n"] == 4
    again = rashomon.json(*built)
    assert again["manifest"] == manifest, "captions are kept, and the same"


@real_rows
@pytest.mark.slow
def test_a_construction_by_real_models_from_the_command_line(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    build_tiny_lm(tmp_path / "tiny", TEXTS, quantise=False)
    rows = [
        row(f"r{n}", [("image", "mine", f"i{n}", f"A picture of {n}"), ("audio", "mine", f"a{n}", f"A sound of {n}")])
        for n in (1, 2)
    ]
    place = write_source(tmp_path / "rows", rows)
    built = ("build", "contra4", "--source", f"captioned={place}", "--per-stratum", "1", "--writer", tmp_path / "tiny")
    message = rashomon.run(*built, "--embedder", tmp_path / "tiny", code=2).stderr
    assert "(8 times: question)" in message, "a model that has learnt nothing asks nothing that is a question"
    assert "nowhere" in rashomon.run(*built, "--embedder", tmp_path / "nowhere", code=2).stderr


@pytest.mark.slow
def test_the_papers_embedding_model_is_the_default_where_it_is_cached(tmp_path: Path) -> None:
    """A tiny model stands in the cache under MiniLM's id; a server on loopback writes and checks by the scripted rule."""
    captions = [f"{adjective} {noun}" for adjective in ("a small", "a very large") for noun in ("dog", "car", "storm")]
    rows = [
        row(f"r{n}", [("image", "mine", f"i{n}", f"{caption} in the light"), ("audio", "mine", f"a{n}", f"{caption}s")])
        for n, caption in enumerate(captions)
    ]
    place = write_source(tmp_path / "rows", rows)
    with FaultServer(lambda prompt, times: writes(prompt), agreed=False) as server:
        models = ("--writer", f"endpoint:one@{server.url}", "--checker", f"endpoint:two@{server.url}")
        rashomon = Rashomon(tmp_path)
        built = ("build", "contra4", "--source", f"captioned-paper={place}", "--per-stratum", "1", "--replace", *models)
        command = (*built, "--allow-address", server.url, "--json")

        def embedder(*options: str) -> str:
            return str(json.loads(rashomon.run(*command, *options).stdout)["result"]["manifest"]["models"]["embedder"])

        assert embedder().startswith("words")
        snapshot = tmp_path / "cache/huggingface/hub/models--sentence-transformers--all-MiniLM-L6-v2"
        build_tiny_lm(snapshot / "snapshots" / "abc", TEXTS, quantise=False)
        (snapshot / "refs").mkdir()
        (snapshot / "refs" / "main").write_text("abc")
        assert embedder() == "sentence-transformers/all-MiniLM-L6-v2"
        assert embedder("--embedder", "words").startswith("words")
        (snapshot / "snapshots" / "abc" / "config.json").unlink()
        assert embedder().startswith("words"), "a model that is only partly there is not cached"
        category = [request.prompt for request in server.received if request.prompt.endswith("Category:")]
        assert category


@pytest.mark.slow
def test_geminis_row_is_repeated_without_3d(tmp_path: Path) -> None:
    """Table 2's Gemini row: sounds, images and videos as they are, 3D left out, by the published prompt."""
    rows = [row("three", [PLAIN[0], PLAIN[1], PLAIN[3]], "B"), row("with-3d", PLAIN), row("two", PLAIN[:2], "B")]
    with FaultServer(lambda prompt, times: "Scene B", agreed=False) as server:
        variables = {"GEMINI_API_KEY": KEYS["GEMINI_API_KEY"], "GOOGLE_GEMINI_BASE_URL": server.url}
        rashomon = Rashomon(tmp_path, variables=variables)
        rashomon.run("build", "contra4", "--source", write_source(tmp_path / "rows", rows))
        model = ("--batch", "--benchmark", "contra4", "--model", "gemini:gemini-2.0-flash-exp", "--name", "r")
        out = rashomon.run(*model, "--allow-address", server.url, "--display", "plain").stdout
        assert "1 of 3 not asked: the model takes no 3D (1)" in out
        assert states(rashomon)["r"] == ("done", 2, 2)
        (main,) = rashomon.json("show", "r", "--table", "main")["tables"]
        assert main["rows"][0]["cells"]["all_all"]["value"] == 1.0
        contents = {len(parts): parts for r in server.received if (parts := r.body["contents"][0]["parts"])}
        kinds = [part["inlineData"]["mime_type"] for part in contents[max(contents)] if "inlineData" in part]
        assert kinds == ["image/png", "audio/wav", "video/mp4"]
        assert KEYS["GEMINI_API_KEY"] not in "".join(p.read_text("latin-1") for p in rashomon.workspace.rglob("*.db*"))


def test_invalid_options_are_one_sentence(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    source = write_source(tmp_path / "rows", [row("one", PLAIN[:2])])
    message = rashomon.run("build", "contra4", "--source", source, "--captioner", "smell=x", code=2).stderr
    assert "MODALITY=MODEL" in message
    message = rashomon.run("build", "clash", "--source", tmp_path, "--checker", "a", "--checker", "b", code=2).stderr
    assert "clash takes one checking model; name --checker once." in message
