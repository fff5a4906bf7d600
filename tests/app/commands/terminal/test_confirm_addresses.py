"""Questions, pictures and keys go to no address that the user has not agreed to on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.commands.terminal.confirm_addresses import confirm_addresses
from app.store.run_store import RunStore
from benchmarks.untrusted.private_state import state_folder
from mlx_backends.remote.allowed_addresses import ADDRESSES_FILE
from mlx_backends.remote.remote_names_and_media import address_of
from tests.support.command import Rashomon
from tests.support.fault_server import FaultServer
from tests.support.recording_proxy import RecordingProxy
from tests.support.trust import agree_to, elsewhere, receive

KEY = "endpoint-key-0123456789abcdef"
OTHER = "another-key-fedcba9876543210"
ASKED = ("batch", "--benchmark", "cmc-bench", "--limit", "1", "--display", "none", "--attempts", "1")


@pytest.fixture
def unknown() -> Iterator[FaultServer]:
    """A server that nobody has agreed to; it records what it is sent."""
    with FaultServer(agreed=False) as server:
        yield server


@pytest.fixture
def keyed(rashomon: Rashomon) -> Rashomon:
    return Rashomon(rashomon.home, variables={"RASHOMON_ENDPOINT_KEY": KEY})


def keys_of(server: FaultServer) -> set[str]:
    return {taken.headers.get("authorization", "") for taken in server.received}


def received(rashomon: Rashomon, **changes: Any) -> Path:
    """A finished run of policies that came back with another model or judges in its spec, asked again."""
    rashomon.run(*ASKED, "--model", "policy:always-image", "--name", "mine")
    folder = rashomon.workspace / "runs" / "theirs"
    shutil.copytree(folder.with_name("mine"), folder)
    with RunStore.read(folder) as store:
        spec, identity = store.meta("spec"), store.meta("identity")
    with elsewhere(), RunStore._connect(folder) as store:
        store.repeat()
    values = {**identity, **changes}
    if "model" in changes:
        from mlx_backends.engine_registry import describe

        info = describe(changes["model"])
        values |= {"engine": info.engine, "device": info.device}
        values |= {f"version of {name}": version for name, version in info.versions.items()}
        values |= {"model": changes["model"]}
    values.pop("judge", None)
    receive(folder, spec={**spec, **changes}, identity=values)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("who", ["model", "judge"])
def test_a_received_run_sends_nothing_before_its_address_is_agreed_to(
    keyed: Rashomon, unknown: FaultServer, who: str
) -> None:
    word = f"endpoint:m@{unknown.url}"
    plain = Rashomon(keyed.home)  # in this process: nothing is sent, with a key or without
    received(plain, **{who: word if who == "model" else ["match", word]})
    address = address_of(unknown.url)
    plain.run("resume", "theirs", code=2)
    plain.run("judge", "theirs", "--judge", word, "--display", "none", code=2)
    assert address in plain.run("adopt", "theirs", "--yes", "--name", "ours").stdout
    stderr = plain.run("resume", "ours", code=2).stderr
    assert f"--allow-address {address}" in stderr
    assert stderr.count("\n") == 1
    plain.run("resume", "ours", "--allow-address", "http://127.0.0.1:1", code=2)
    assert unknown.requests == 0
    # The server gives answers, and as a judge no label.
    again = ("resume", "ours", "--allow-address", unknown.url, "--display", "none")
    process = keyed.process(*again, code=0 if who == "model" else 1)
    assert unknown.requests > 0, process
    assert keys_of(unknown) == {f"Bearer {KEY}"}
    assert KEY not in process.stdout + process.stderr


@pytest.mark.slow
def test_a_dry_run_accepts_the_address_that_it_is_told_to_allow(keyed: Rashomon, unknown: FaultServer) -> None:
    asked = ("batch", "--benchmark", "cmc-bench", "--limit", "1", "--dry-run", "--model", f"endpoint:m@{unknown.url}")
    assert "not ready to run" in keyed.run(*asked).stdout
    allowed = keyed.run(*asked, "--allow-address", unknown.url)
    assert "--allow-address" not in allowed.stdout + allowed.stderr
    assert unknown.requests == 0


def test_agreements_at_the_same_time_are_all_recorded() -> None:
    urls = [f"http://127.0.0.1:{port}" for port in range(1000, 1040)]
    with elsewhere():
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(agree_to, urls))
        assert sorted((state_folder() / ADDRESSES_FILE).read_text().split()) == sorted(urls)


COMMANDS: tuple[tuple[str, ...], ...] = (
    (*ASKED, "--model", "MODEL"),
    (*ASKED, "--model", "policy:random", "--judge", "MODEL"),
    ("judge", "mine", "--judge", "MODEL", "--display", "none"),
    ("import", "answers.jsonl", "--benchmark", "cmc-bench", "--model", "m", "--judge", "MODEL", "--display", "none"),
    ("build", "mmkc-bench", "--source", "nowhere", "--writer", "MODEL"),
    ("build", "clash", "--source", "nowhere", "--checker", "MODEL"),
    ("build", "contra4", "--source", "nowhere", "--captioner", "image=MODEL"),
    ("parity", "--model", "MODEL", "--benchmark", "cmc-bench", "--limit", "1", "--display", "none"),
    ("batch", "spec.toml", "--display", "none"),
)


def test_no_command_sends_anything_to_a_new_address(keyed: Rashomon, unknown: FaultServer) -> None:
    """Loopback is no exception: another user's process may listen there."""
    word = f"endpoint:m@{unknown.url}"
    plain = Rashomon(keyed.home)
    plain.run(*ASKED, "--model", "policy:always-image", "--name", "mine")
    (keyed.home / "answers.jsonl").write_text("")
    (keyed.home / "spec.toml").write_text(f'benchmark = "cmc-bench"\nmodel = "{word}"\nlimit = 1\n')
    for command in COMMANDS:
        stderr = plain.run(*(word_.replace("MODEL", word) for word_ in command), code=2).stderr
        assert address_of(unknown.url) in stderr, command
    for variables in (
        {"OPENAI_API_KEY": OTHER, "OPENAI_BASE_URL": unknown.url},
        {"ANTHROPIC_API_KEY": OTHER, "ANTHROPIC_BASE_URL": unknown.url},
        {"GEMINI_API_KEY": OTHER, "GOOGLE_GEMINI_BASE_URL": unknown.url},
        {"AZURE_OPENAI_API_KEY": OTHER, "AZURE_OPENAI_ENDPOINT": unknown.url},
    ):
        engine = {"GEMINI": "gemini", "AZURE": "azure"}.get(next(iter(variables)).split("_")[0], "")
        engine = engine or next(iter(variables)).split("_")[0].lower()
        other = Rashomon(keyed.home, variables=variables)
        stderr = other.run(*ASKED, "--model", f"{engine}:m", code=2).stderr
        assert address_of(unknown.url) in stderr, engine
        assert OTHER not in stderr
    assert unknown.requests == 0


def test_a_key_named_with_its_address_goes_there_alone(rashomon: Rashomon, unknown: FaultServer) -> None:
    with FaultServer() as agreed:
        variable = f"{address_of(unknown.url)}={KEY}\thttp://127.0.0.1:1={OTHER}"
        keyed = Rashomon(rashomon.home, variables={"RASHOMON_ENDPOINT_KEY": variable})
        keyed.run(*ASKED, "--model", f"endpoint:m@{unknown.url}")
        keyed.run(*ASKED, "--model", f"endpoint:m@{agreed.url}")
        assert keys_of(unknown) == {f"Bearer {KEY}"}
        assert agreed.requests > 0
        assert keys_of(agreed) == {"Bearer none"}


def test_a_redirection_to_another_port_is_not_followed(keyed: Rashomon, unknown: FaultServer) -> None:
    with FaultServer(fault=lambda number: f"redirect {unknown.url}/chat/completions") as agreed:
        keyed.run(*ASKED, "--model", f"endpoint:m@{agreed.url}", code=1)
        assert agreed.requests > 0
    assert unknown.requests == 0


@pytest.mark.parametrize(("answer", "sent"), [("y", True), ("n", False), ("", False)])
def test_on_a_terminal_a_new_address_is_asked_for_once(
    keyed: Rashomon, unknown: FaultServer, answer: str, sent: bool
) -> None:
    shown, code = on_terminal(keyed, [*ASKED, "--model", f"endpoint:m@{unknown.url}"], f"{answer}\n")
    assert f"{address_of(unknown.url)} has not been used on this machine" in " ".join(shown.split())
    assert KEY not in shown
    assert code == (0 if sent else 2)
    assert (unknown.requests > 0) is sent
    agreed = (state_folder() / ADDRESSES_FILE).read_text().split()
    assert (address_of(unknown.url) in agreed) is sent
    if sent:
        shown, code = on_terminal(keyed, [*ASKED, "--model", f"endpoint:m@{unknown.url}", "--name", "again"], "")
        assert "new on this machine" not in shown
        assert code == 0


def on_terminal(rashomon: Rashomon, arguments: list[str], typed: str, question: str = "[y/N]") -> tuple[str, int]:
    """Run on a terminal, type when a ``question`` stands there; all that was shown, and the exit code."""
    master, slave = os.openpty()
    with subprocess.Popen(
        rashomon.command(*arguments),
        env=rashomon.environment,
        cwd=rashomon.home,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as process:
        os.close(slave)
        shown = ""
        with suppress(OSError):
            while piece := os.read(master, 4096):
                shown += piece.decode(errors="replace")
                if typed and question in shown:
                    os.write(master, typed.encode())
                    typed = ""
        os.close(master)
        return shown, process.wait()


def test_an_address_is_allowed_through_the_named_proxy_only(rashomon: Rashomon) -> None:
    """The proxy answers for a host that nobody else knows."""
    asked = (*ASKED, "--model", "endpoint:m@http://model.invalid/v1")
    with FaultServer(agreed=False) as proxy, RecordingProxy() as other:
        name = address_of(proxy.url)
        through = Rashomon(
            rashomon.home,
            variables={"RASHOMON_ENDPOINT_KEY": KEY, "http_proxy": name.replace("//", "//somebody:the-password@")},
        )
        agree_to("http://model.invalid")  # as an earlier version stored it
        route = f"http://model.invalid:80,proxy={name}"
        refusals = through.run(*asked, code=2).stderr
        refusals += through.run(*asked, "--allow-address", "http://model.invalid/v1", code=2).stderr
        assert f"http://model.invalid:80 through the proxy {name} is new" in refusals
        assert f"--allow-address {route} " in refusals
        assert proxy.requests == 0
        displayed = through.run(*asked, "--allow-address", route)
        requests = proxy.requests
        assert {taken.path for taken in proxy.received} == {"http://model.invalid/v1/chat/completions"}
        assert keys_of(proxy) == {f"Bearer {KEY}"}
        through.run(*asked, "--name", "again", "--fresh")
        assert proxy.requests > requests
        elsewhere_ = Rashomon(rashomon.home, variables={"RASHOMON_ENDPOINT_KEY": KEY, "http_proxy": other.url})
        assert other.url in elsewhere_.run(*asked, "--name", "third", code=2).stderr
        assert other.carried == []
    stored = [path.read_bytes() for path in (*state_folder().rglob("*"), *rashomon.home.rglob("*")) if path.is_file()]
    stored += [refusals.encode(), displayed.stdout.encode(), displayed.stderr.encode()]
    assert not any(secret in text for text in stored for secret in (b"somebody", b"the-password"))


def test_the_question_about_an_address_names_its_proxy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://somebody:secret@proxy.invalid:3128")
    questions: list[str] = []
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)

    def agree(question: str, **_: object) -> bool:
        questions.append(question)
        return True

    monkeypatch.setattr("click.confirm", agree)
    with elsewhere():
        agree_to("http://model.invalid")
        for _ in range(2):
            confirm_addresses(["endpoint:m@http://model.invalid/v1"], ())
    assert questions == ["Allow http://model.invalid:80 through the proxy http://proxy.invalid:3128?"]
    assert "http://proxy.invalid:3128 has not been used" in " ".join(capsys.readouterr().err.split())


HOSTS = ("127.0.0.1", "localhost", "LOCALHOST", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f000001")
PATHS = ("", "/v1", "/v1/", "//v1", "/%2e%2e/v1", "/;x", "/a:80")


@pytest.mark.slow
def test_no_spelling_of_an_address_gets_past_the_agreement_to_another(rashomon: Rashomon, unknown: FaultServer) -> None:
    """Another port of the same host is agreed to."""
    port = address_of(unknown.url).rpartition(":")[2]
    folder = received(rashomon)
    commands = 0
    with FaultServer(), RunStore.read(folder) as store:
        spec = store.meta("spec")
    for number, (host, path) in enumerate((host, path) for host in HOSTS for path in PATHS):
        word = f"endpoint:m@http://{host}:{port}{path}"
        receive(folder, spec={**spec, "judge": ["match", word]})
        rashomon.run("resume", "theirs", code=2)
        rashomon.run("adopt", "theirs", "--yes", "--name", f"ours-{number}")
        rashomon.run("resume", f"ours-{number}", "--allow-address", "http://127.0.0.1:1", code=2)
        rashomon.run("judge", f"ours-{number}", "--judge", word, "--display", "none", code=2)
        rashomon.run(*ASKED, "--model", word, "--name", f"new-{number}", code=2)
        commands += 5
    assert commands == 5 * len(HOSTS) * len(PATHS)
    assert unknown.requests == 0


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "ftp://h:1",
        "http://",
        "http://user:secret@h",
        "http://h:0",
        "http://h:x",
        "//h",
        "",
        "http://h,proxy=secret:1:2",
    ],
)
def test_what_is_no_address_is_not_agreed_to(rashomon: Rashomon, text: str) -> None:
    stderr = rashomon.run(*ASKED, "--model", "policy:random", "--allow-address", text, code=2).stderr
    assert "secret" not in stderr
    assert stderr.count("\n") == 1
