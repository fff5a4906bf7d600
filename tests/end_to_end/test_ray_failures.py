"""Failures of clusters: wrong addresses, pulled cables, nodes without memory, two runs at a time.

They need the extra ray.
"""

from __future__ import annotations

import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.app.commands.running.test_batch_command import wait_until
from tests.end_to_end.test_ray import BATCH, POLICY, RUN, answered, export, export_alone, home, summary
from tests.support.command import ROOT, Rashomon, free_port
from tests.support.demo import FOUR_BIT
from tests.support.machines import RashomonOn, machines
from tests.support.ray_nodes import ray_nodes

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

CUT_SECONDS = 60
INTERRUPTED = 130
UNHURRIED = {"seconds": (0.2, 0.4)}
"""Orders to nodes: a run of minutes."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failures") / "cmc-bench"
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], folder, BuildOptions())
    return folder


def nodes_of(rashomon: Rashomon) -> list[tuple[str, str, int]]:
    """The state, the note and the answers of each node."""
    return [(node["state"], node["note"], node["answers"]) for node in summary(rashomon)["nodes"]]


@contextmanager
def silent_server() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield server.getsockname()[1]


def test_addresses_without_a_head_end_the_command_in_time(built: Path, tmp_path: Path) -> None:
    rashomon = home(built, tmp_path)
    nowhere = home(built, tmp_path / "nowhere", None, RAY_ADDRESS=f"127.0.0.1:{free_port()}", RAY_AUTH_TOKEN="0" * 64)
    with silent_server() as port:
        for command, workers in ((rashomon, f"ray://127.0.0.1:{port}"), (nowhere, "ray")):
            started = time.monotonic()
            refused = command.process(*BATCH, *POLICY, "--workers", workers, code=3)
            print(f"{time.monotonic() - started:.0f} s", refused.stderr)
            assert time.monotonic() - started < 120


def test_port_of_the_cluster_itself_is_no_address_for_strangers(built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).environment, tmp_path, workers=1) as nodes:
        rashomon = home(built, tmp_path, nodes)
        refused = rashomon.process(*BATCH, *POLICY, "--workers", f"ray://{nodes.address}", code=3)
        print(refused.stderr)


@pytest.mark.parametrize("by_client", [False, True])
def test_interrupt_frees_the_workers_and_leaves_the_cluster(by_client: bool, built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).ordered(**UNHURRIED).environment, tmp_path, workers=2) as nodes:
        workers = nodes.client_address if by_client else "ray"
        rashomon = home(built, tmp_path, nodes)
        process = rashomon.start(*BATCH, *POLICY, "--limit", "20", "--workers", workers)
        wait_until(lambda: answered(rashomon) > 5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == INTERRUPTED, err
        assert "Traceback" not in err
        wait_until(lambda: not nodes.actors(), 30)
        assert all(node.poll() is None for node in (nodes.head, *nodes.nodes))
        rashomon.process("resume", RUN, "--workers", workers, "--display", "none")
        assert len(nodes_of(rashomon)) == 2
    alone = home(built, tmp_path / "alone")
    alone.process(*BATCH, *POLICY, "--limit", "20")
    assert export(rashomon) == export(alone)


def test_two_runs_share_a_cluster(built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).ordered(seconds=(0.0, 0.02)).environment, tmp_path, workers=2) as nodes:
        homes = [home(built, tmp_path / name, nodes) for name in ("first", "second")]
        processes = [rashomon.start(*BATCH, *POLICY, "--workers", nodes.client_address) for rashomon in homes]
        for process in processes:
            _, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
        wait_until(lambda: not nodes.actors(), 30)
    alone = export_alone(built, tmp_path / "alone")
    for rashomon in homes:
        print(nodes_of(rashomon))
        assert export(rashomon) == alone


def test_node_without_memory_is_given_up_and_others_answer(built: Path, tmp_path: Path) -> None:
    """Ray ends workers where memory is short: on one of the nodes, it always is."""
    with ray_nodes(Rashomon(tmp_path).ordered(**UNHURRIED).environment, tmp_path, workers=1) as nodes:
        nodes.add(RAY_memory_usage_threshold="0.01", RAY_memory_monitor_refresh_ms="100")
        rashomon = home(built, tmp_path, nodes)
        rashomon.process(*BATCH, *POLICY, "--limit", "20", "--workers", "ray")
        print(nodes_of(rashomon))
    assert any("memory" in note for _, note, _ in nodes_of(rashomon))
    assert sum(answers for _, _, answers in nodes_of(rashomon)) == summary(rashomon)["total"]


@pytest.mark.parametrize("by_client", [False, True])
def test_run_is_resumed_on_a_new_head(by_client: bool, built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).ordered(**UNHURRIED).environment, tmp_path, workers=1) as nodes:
        workers = nodes.client_address if by_client else "ray"
        rashomon = home(built, tmp_path, nodes)
        process = rashomon.start(*BATCH, *POLICY, "--limit", "20", "--workers", workers)
        wait_until(lambda: answered(rashomon) > 5)
        started = time.monotonic()
        nodes.remove(nodes.head)
        _, err = process.communicate(timeout=300)
        print(f"{time.monotonic() - started:.0f} s", process.returncode, err)
        assert process.returncode == 3
        assert "Traceback" not in err
        for node in nodes.nodes:
            nodes.remove(node)
        nodes.start_head()
        nodes.add()
        rashomon.process("resume", RUN, "--workers", workers, "--display", "none")
    alone = home(built, tmp_path / "alone")
    alone.process(*BATCH, *POLICY, "--limit", "20")
    assert export(rashomon) == export(alone)


@pytest.mark.parametrize("model", ["policy:uniform", FOUR_BIT])
@pytest.mark.parametrize("victim", ["node", "driver"])
def test_pulled_cable_loses_nothing(victim: str, model: str | Path, built: Path, tmp_path: Path) -> None:
    """The cable is put back after a minute. The head, two nodes and the driver are machines of a network.

    The demo model is shown images, which the driver sends meanwhile.
    """
    question = ("--model", model, "--limit", "60")
    with (
        machines(4) as network,
        ray_nodes(Rashomon(tmp_path).ordered(**UNHURRIED).environment, tmp_path, workers=2, network=network) as nodes,
    ):
        here = home(built, tmp_path, nodes)
        rashomon = RashomonOn(here.home, here.orders, here.variables, tuple(network.prefix(3)))
        process = rashomon.start(*BATCH, *question, "--workers", nodes.client_address)
        wait_until(lambda: answered(rashomon) > 5, 200)
        number = {"node": 2, "driver": 3}[victim]
        network.cut(number)
        time.sleep(CUT_SECONDS)
        network.join(number)
        _, err = process.communicate(timeout=600)
        print(victim, process.returncode, err, answered(rashomon), nodes_of(rashomon))
        assert "Traceback" not in err
        assert process.returncode in ((0,) if victim == "node" else (0, 2)), (
            "Ray may give a driver's connection up, or not"
        )
        if process.returncode:
            assert "cannot be reached" in err
            wait_until(lambda: not nodes.actors(), 60)
            rashomon.process("resume", RUN, "--workers", nodes.client_address, "--display", "none")
    alone = home(built, tmp_path / "alone")
    alone.process(*BATCH, *question)
    assert export(rashomon) == export(alone)


def test_clocks_need_not_agree(built: Path, tmp_path: Path) -> None:
    faketime = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if faketime is None or shutil.which("faketime") is None:
        pytest.skip("other clocks need faketime")
    skew = {"LD_PRELOAD": str(faketime), "FAKETIME": "+90m"}
    with ray_nodes(Rashomon(tmp_path).ordered(**UNHURRIED).environment, tmp_path, workers=1) as nodes:
        nodes.add(**skew)
        rashomon = home(built, tmp_path, nodes)
        rashomon.process(*BATCH, *POLICY, "--limit", "10", "--workers", "ray")
        print(nodes_of(rashomon))
    assert [state for state, _, _ in nodes_of(rashomon)] == ["ready", "ready"]
    alone = home(built, tmp_path / "alone")
    alone.process(*BATCH, *POLICY, "--limit", "10")
    assert export(rashomon) == export(alone)
