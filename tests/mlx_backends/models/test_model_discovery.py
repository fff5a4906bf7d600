"""Discovery and description of models, and refusal of those that cannot or must not run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import struct
from collections.abc import Callable
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import ModelError, SpecError
from benchmarks.fetch.hub_cache import hub_cache
from benchmarks.vocabulary import Media, Text
from mlx_backends.base import no_media
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.models.model_discovery import cached_models, inspect, resolve
from mlx_backends.models.weight_files import stored_dtype, weight_files, weights_digest
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support.tiny_models import FAMILIES

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def nowhere(media: Media) -> Path:
    return Path("nowhere") / media.name


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Hugging Face cache."""
    for variable in ("HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    (tmp_path / "hf" / "hub").mkdir(parents=True)
    return tmp_path / "hf" / "hub"


def fetched(hub: Path, name: str, source: Path) -> Path:
    """Put a model into the cache as `hf download` does: blobs, and a snapshot of links to them."""
    repository = hub / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    for folder in (repository / "blobs", repository / "refs", snapshot):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for file in source.iterdir():
        data = file.read_bytes()
        large = file.suffix == ".safetensors"
        blob = repository / "blobs" / (hashlib.sha256(data) if large else hashlib.sha1(data)).hexdigest()
        blob.write_bytes(data)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


@pytest.fixture
def broken(tiny: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model, to be damaged."""
    return shutil.copytree(tiny, tmp_path / "broken")


def set_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


# --- what there is --------------------------------------------------------------------------------


def test_a_folder_is_described_without_being_loaded(tiny: Path, tiny_4bit: Path) -> None:
    plain, quantised = describe(str(tiny)), describe(str(tiny_4bit))
    assert (plain.engine, plain.model, plain.revision, plain.quantisation) == ("mlx-vlm", "tiny-bf16", None, "bf16")
    assert quantised.quantisation == "4-bit g64"
    assert set(plain.versions) == {"mlx", "mlx-vlm", "transformers"}
    assert "none" not in plain.versions.values()
    assert plain.weights != quantised.weights
    assert plain.needs_device


def test_a_backend_carries_the_description(tiny: Path) -> None:
    assert load_backend(str(tiny), nowhere).info == describe(str(tiny))


def test_a_model_of_the_cache_is_found_by_its_id(hub: Path, tiny: Path, pictures: Pictures) -> None:
    snapshot = fetched(hub, "org/tiny-4b", tiny)
    info = describe("org/tiny-4b")
    assert resolve("org/tiny-4b") == snapshot
    assert (info.model, info.revision) == ("org/tiny-4b", COMMIT)
    assert describe(str(snapshot)) == info
    assert answer(load_backend("org/tiny-4b", pictures.path), request_of(Text("Hello."))).error is None


def test_digest_is_equal_in_cache_and_folder(hub: Path, tiny: Path) -> None:
    assert weights_digest(fetched(hub, "org/tiny", tiny)) == weights_digest(tiny)


def test_missing_model_says_how_to_fetch_it_without_network(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", refuse_connection)
    with pytest.raises(ModelError, match=r"`rashomon models get org/absent` fetches it"):
        load_backend("org/absent", nowhere)


@pytest.mark.parametrize("name", ["", "/no/such/folder", "~nobody/x", "a/b/c", "org/--", "\x1b[31m", "a\0b", "x" * 300])
def test_unknown_model_name_is_an_error(hub: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hub)
    with pytest.raises(ModelError):
        load_backend(name or "./absent", nowhere)


def refuse_connection(*_: object) -> None:
    raise AssertionError("something tried to reach the network")


def test_loading_and_answering_use_no_network_or_standard_output(
    tiny: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket.socket, "connect", refuse_connection)
    monkeypatch.setattr(socket, "getaddrinfo", refuse_connection)
    backend = load_backend(str(tiny), pictures.path)
    assert answer(backend, request_of(pictures.noise(1), Text("What?"))).error is None
    assert capfd.readouterr().out == ""
    import huggingface_hub.constants

    assert not huggingface_hub.constants.HF_HUB_OFFLINE


def test_prints_while_loading_go_to_standard_error(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import mlx_vlm

    real = mlx_vlm.load

    def noisy(*arguments: object, **named: object) -> object:
        print("Add pad token")
        return real(*arguments, **named)

    monkeypatch.setattr(mlx_vlm, "load", noisy)
    load_backend(str(tiny), nowhere)
    assert capsys.readouterr().out == ""


def test_cache_listing_reports_faults(hub: Path, tiny: Path, tiny_4bit: Path) -> None:
    fetched(hub, "org/b-4bit", tiny_4bit)
    fetched(hub, "org/a-bf16", tiny)
    text_only = fetched(hub, "org/text", tiny)
    (text_only / "config.json").unlink()
    (text_only / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    no_processor(fetched(hub, "org/blind", tiny))
    (hub / "models--org--empty").mkdir()
    (hub / "models--org--cut" / "refs").mkdir(parents=True)
    (hub / "models--org--cut" / "refs" / "main").write_bytes(b"\xff\xfe")
    (hub / "datasets--org--data").mkdir()
    models = {model.name: model for model in cached_models()}
    assert list(models) == ["org/a-bf16", "org/b-4bit", "org/blind", "org/cut", "org/empty", "org/text"]
    good = models["org/b-4bit"]
    assert (good.quantisation, good.architecture, good.problem) == (
        "4-bit g64",
        "Qwen3VLForConditionalGeneration",
        None,
    )
    assert good.weights_bytes == (tiny_4bit / "model.safetensors").stat().st_size
    assert (good.engine, models["org/text"].engine, models["org/text"].problem) == ("mlx-vlm", "mlx-lm", None)
    assert "settings of its image processor" in (models["org/blind"].problem or "")
    assert models["org/empty"].problem
    assert models["org/cut"].problem


@pytest.mark.parametrize(
    ("set_to", "expected"),
    [
        ({"HF_HUB_CACHE": "/a/hub", "HF_HOME": "/b"}, "/a/hub"),
        ({"HF_HOME": "/b"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HOME": "/d"}, "/d/.cache/huggingface/hub"),
    ],
)
def test_cache_path_follows_the_environment(
    set_to: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in set_to.items():
        monkeypatch.setenv(variable, value)
    assert hub_cache() == Path(expected)


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"group_size": 32, "bits": 8, "mode": "affine"}, "8-bit g32"),
        ({"group_size": 32, "bits": 4, "mode": "mxfp4"}, "4-bit g32 mxfp4"),
        ({"group_size": 64, "bits": 4, "lm_head": {"group_size": 64, "bits": 6}, "x": False}, "mixed 4/6-bit g64"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"bits": "\x1b[31m", "quant_method": 3}, "bf16"),
        ("nonsense", "bf16"),
        (None, "bf16"),
    ],
)
def test_the_quantisation_is_read_from_the_configuration(broken: Path, quantization: object, expected: str) -> None:
    set_config(broken, quantization=quantization)
    assert inspect(broken).quantisation == expected


# --- what is refused ------------------------------------------------------------------------------


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def config_not_json(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"{\xff")


def config_too_deep(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)


def config_no_object(folder: Path) -> None:
    (folder / "config.json").write_text("[1]")


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def pickles_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def index_of(*files: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        weights = {f"weight{number}": file for number, file in enumerate(files)}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))

    return spoil


def index_broken(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": [1]}')


def cut_short(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-100])


def no_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def text_only(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))


def unknown_type(folder: Path) -> None:
    set_config(folder, model_type="qwen9_vl")


def type_a_path(folder: Path) -> None:
    set_config(folder, model_type="../../evil")


def type_no_string(folder: Path) -> None:
    set_config(folder, model_type=["qwen3_vl"])


def odd_architectures(folder: Path) -> None:
    set_config(folder, architectures=5)


def runs_a_file(folder: Path) -> None:
    set_config(folder, model_file="model.py")
    (folder / "model.py").write_text("raise SystemExit('the model ran code of its own')")


def missing_tensor(folder: Path) -> None:
    import mlx.core as mx

    weights = mx.load(str(folder / "model.safetensors"))
    assert isinstance(weights, dict)
    weights.pop(next(iter(weights)))
    mx.save_safetensors(str(folder / "model.safetensors"), weights)


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def no_processor(folder: Path) -> None:
    """mlx-vlm would load it, and show it images of another size."""
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").unlink(missing_ok=True)


@pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is installed")
def test_a_processor_that_needs_torchvision_is_named(tmp_path: Path) -> None:
    folder = FAMILIES["llava"](tmp_path / "llava")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_processor_type": "Llama4ImageProcessorFast"}))
    with pytest.raises(ModelError, match="torchvision"):
        load_backend(str(folder), no_media)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_config, "holds no config.json"),
        (config_not_json, "cannot be read as JSON"),
        (config_too_deep, "cannot be read as JSON"),
        (config_no_object, "is not a JSON object"),
        (no_weights, "holds no weights"),
        (pickles_only, "only pickled weights"),
        (index_of("model.safetensors", "model-00002-of-00002.safetensors"), "lacks 1 of its 2 weight files"),
        (index_of("../elsewhere.safetensors"), "outside the model's folder"),
        (index_broken, "not an index of weights"),
        (cut_short, "holds only 1,072,288 of the 1,072,388 bytes of model.safetensors"),
        (no_header, "not a whole safetensors file"),
        (text_only, "the text-only model broken could not be loaded"),
        (unknown_type, "'qwen9_vl', which this version of mlx-vlm does not know"),
        (type_a_path, "does not know"),
        (type_no_string, "has no model_type in its config.json"),
        (odd_architectures, "does not know"),
        (runs_a_file, "asks to run its own code"),
        (missing_tensor, "names or shapes of the weights"),
        (no_tokenizer, "holds no tokenizer"),
        (no_processor, "lacks the settings of its image processor"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_unusable_folder_is_one_sentence(broken: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(broken)
    with pytest.raises(ModelError) as caught:
        load_backend(str(broken), nowhere)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
tensors = st.dictionaries(
    st.text(max_size=5),
    json_values | st.fixed_dictionaries({"dtype": json_values, "data_offsets": st.lists(json_values, max_size=3)}),
)


@given(header=json_values | tensors, length=st.none() | st.integers(0, 2**64 - 1), rest=st.binary(max_size=40))
def test_a_hostile_weights_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, header: object, length: int | None, rest: bytes
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    text = json.dumps(header).encode()
    stated = struct.pack("<Q", len(text) if length is None else length)
    (folder / "model.safetensors").write_bytes(stated + text + rest)
    with suppress(ModelError):
        assert stored_dtype(weight_files(folder)) in {None, "bf16", "fp16", "fp32", "fp64"}


@given(json_values | st.fixed_dictionaries({"weight_map": json_values}))
def test_a_hostile_index_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, index: object) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError):
        weight_files(folder)


@pytest.mark.slow
@given(
    st.dictionaries(st.text(max_size=5) | st.sampled_from(["quantization", "architectures", "model_type"]), json_values)
)
def test_a_hostile_configuration_is_described_or_refused(tiny: Path, config: dict[str, object]) -> None:
    with TemporaryDirectory() as scratch:
        folder = shutil.copytree(tiny, Path(scratch) / "model")
        (folder / "config.json").write_text(json.dumps({**config, "vision_config": {}}))
        with suppress(ModelError):
            info = inspect(folder)
            assert isinstance(info.quantisation, str | None)
            assert isinstance(info.architecture, str | None)


@pytest.mark.parametrize("guarded", [True, False])
def test_code_in_a_model_folder_is_never_run(
    guarded: bool, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A processor of the folder's own: transformers would import it, and mlx-vlm would let it."""
    if not guarded:  # the switch that mlx-vlm and transformers offer has to do on its own as well
        monkeypatch.setattr("mlx_backends.core.library_isolation._set", lambda *_: nullcontext())
    ran = tmp_path / "ran"
    (broken / "evil.py").write_text(
        f"open({str(ran)!r}, 'w').close()\nclass Evil:\n    @classmethod\n    def from_pretrained(cls, *a, **k): pass\n"
    )
    mapped = {"AutoProcessor": "evil.Evil", "AutoTokenizer": ["evil.Evil", "evil.Evil"], "AutoConfig": "evil.Evil"}
    set_config(broken, auto_map=mapped)
    for name in ("tokenizer_config.json", "preprocessor_config.json"):
        file = broken / name
        file.write_text(json.dumps({**json.loads(file.read_text()), "auto_map": mapped, "tokenizer_class": "Evil"}))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with suppress(ModelError):
        load_backend(str(broken), nowhere)
    assert not ran.exists()


def test_code_is_refused_even_if_a_library_requests_it(broken: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from mlx_backends.core.library_isolation import contained

    ran = tmp_path / "ran"
    (broken / "evil.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Evil: pass\n")
    file = broken / "tokenizer_config.json"
    settings = {**json.loads(file.read_text()), "tokenizer_class": "Evil"}
    file.write_text(json.dumps({**settings, "auto_map": {"AutoTokenizer": ["evil.Evil", None]}}))
    with contained(), pytest.raises(ModelError, match="which Rashomon never runs"):
        AutoTokenizer.from_pretrained(str(broken), trust_remote_code=True)
    assert not ran.exists()


def test_misspelt_policy_suggests_the_closest_name(hub: Path) -> None:
    for ask in (describe, lambda name: load_backend(name, nowhere)):
        with pytest.raises(SpecError, match="did you mean 'policy:always-image'"):
            ask("policy:always-imag")


def test_unusable_processor_is_one_sentence(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AttributeError("'Tokenizer' object has no attribute 'get_vocab'")

    monkeypatch.setattr("mlx_backends.mlx.mlx_preprocess.Prompter", fail)
    with pytest.raises(ModelError, match="tiny-bf16 was loaded but cannot be asked: AttributeError"):
        load_backend(str(tiny), nowhere)


# --- the digest -----------------------------------------------------------------------------------


def test_digest_covers_every_file_that_affects_answers(broken: Path) -> None:
    before = weights_digest(broken)
    (broken / "README.md").write_text("Another description.")
    (broken / "model.py").write_text("raise SystemExit")
    assert weights_digest(broken) == before
    digests = {before}
    for name in ("model.safetensors", "config.json", "tokenizer.json", "preprocessor_config.json"):
        with (broken / name).open("ab") as stream:
            stream.write(b" ")
        digests.add(weights_digest(broken))
    assert len(digests) == 5


def test_digest_cache_loss_only_costs_time(broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = tmp_path / "cache" / "weights.json"
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: remembered.parent)
    expected = weights_digest(broken)
    entries = json.loads(remembered.read_text())
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", lambda *_: pytest.fail("read a file again"))
        assert weights_digest(broken) == expected
    for spoilt in (
        b"",
        b"\xff",
        b"[1]",
        b"[" * 100_000,
        json.dumps(dict.fromkeys(entries, 3)).encode(),
        json.dumps({path: [*entry[:2], 7] for path, entry in entries.items()}).encode(),
        json.dumps({path: [*entry[:2], "../x"] for path, entry in entries.items()}).encode(),
    ):
        remembered.write_bytes(spoilt)
        assert weights_digest(broken) == expected
    shutil.rmtree(remembered.parent)
    remembered.parent.write_text("a file where the folder should be")
    assert weights_digest(broken) == expected


def test_large_cache_files_are_not_read(hub: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = fetched(hub, "org/tiny", tiny)
    expected = weights_digest(tiny)
    blob = (snapshot / "model.safetensors").resolve()
    blob.write_bytes(bytes(blob.stat().st_size))  # were it read, the digest would change
    assert weights_digest(snapshot) == expected
