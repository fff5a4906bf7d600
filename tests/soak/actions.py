"""Actions of a played user. Each draws its commands from chance and from the ledger, or nothing if it is not possible now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.soak.commands import Command
from tests.soak.interface import interface
from tests.soak.ledger import Ledger, Run, Step, Training
from tests.soak.servers import CONCURRENCY

Action = Callable[[Random, Ledger], Step | None]
SIGNALS = ("KILL", "TREE", "TERM", "INT", "HUP")
POLICIES = {
    "charts": ("policy:uniform", "policy:random", "policy:always-image", "policy:always-text", "policy:always-abstain"),
    "{home}/builds/clash": ("policy:always-image", "policy:always-text"),
}
CLASH = "{home}/builds/clash"
ODD_FILES = ("plain", "mit Leerzeichen", "-dash", "שלום", "a\u202eb", "日本語 🦉", "x" * 120, "%s{}$HOME", "it's")
REFUSED_NAMES = ("with space", "-dash", "שלום", "../up", "x" * 90, ".hidden", "\x1b[31mred", "tab\there", "owl🦉", "")


def _kill(chance: Random, command: Command, share: float, longest: float) -> Command:
    """Let the command be killed at a random moment in a share of cases."""
    if chance.random() > share:
        return command
    return replace(command, signal=chance.choice(SIGNALS), after=round(chance.uniform(0, longest), 3))


def _vary(chance: Random, command: Command) -> Command:
    """Let the user name the workspace by its link, or have a wrong clock, in some cases."""
    clock = (0.0, 0.0, 0.0)
    if chance.random() < 0.15:
        clock = (
            chance.choice([-4e8, -86400.0, 0.0, 3600.0, 4e8]),
            chance.uniform(0, 3),
            chance.choice([-7200.0, 7200.0]),
        )
    return replace(command, linked=chance.random() < 0.2, clock=clock)


def _with_repeat(killed: Command, command: Command) -> tuple[tuple[Command, ...], ...]:
    """Return the stages of a command that is repeated if it is killed."""
    return ((killed,), (command,)) if killed.signal else ((command,),)


def _spec(chance: Random, ledger: Ledger) -> Run:
    """Draw a new run."""
    number = ledger.number * 10 + chance.randrange(10)
    data = chance.choice([*POLICIES, "charts"])
    kind = chance.choices(["policy", "server", "demo"], [50, 40, 10])[0]
    kind = "policy" if data == CLASH and kind == "server" else kind
    model, server = chance.choice(POLICIES[data]), ""
    limit = str(chance.choice([2, 3, 6]))
    if kind == "server":
        server = f"m{number}"
        model, limit = f"endpoint:{server}@{{server}}", str(chance.choice([1, 2, 3]))
    elif kind == "demo":
        model, limit = "{demo}", "1"
    benchmark = "clash" if data == CLASH else "cmc-bench"
    name = chance.choice(["run-{}", "R.{}_x", "con.{}", "a{}" + "z" * 70]).format(number)
    words = ["batch", "--benchmark", benchmark, "--data", data, "--model", model, "--limit", limit, "--name", name]
    words += ["--seed", str(chance.choice([0, 0, 1])), "--display", chance.choice(["none", "plain", "json"])]
    if kind == "server":
        words += ["--allow-address", "{server}", "--concurrency", str(CONCURRENCY), "--attempts", "12"]
    if kind == "demo":
        words += ["--exact"] if chance.random() < 0.7 else []
    elif benchmark == "cmc-bench" and chance.random() < 0.2:
        words += ["--prompt-set", "conflict-aware"]
    key = words.copy()
    for option in ("--name", "--display"):
        del key[key.index(option) : key.index(option) + 2]
    reference = (
        ""
        if kind == "demo" and "--exact" not in words
        else json.dumps([word.replace(server or "\0", "M") for word in key])
    )
    return Run(name, tuple(words), reference, server)


def begin(chance: Random, ledger: Ledger) -> Step | None:
    """Begin a run."""
    run = _spec(chance, ledger)
    longest = 12 if run.model or "{demo}" in run.command else 5
    patience = 3.0 if "{demo}" in run.command else 1.5
    command = _kill(chance, _vary(chance, Command(run.command, patience=patience)), 0.45, longest)
    return Step("begin", ((command,),), (run.name,), (run,), failing=chance.choice([0, 0, 0.1, 0.3]))


def resume(chance: Random, ledger: Ledger) -> Step | None:
    """Resume a run that was interrupted, by its command or its name."""
    if not ledger.incomplete():
        return None
    run = chance.choice(ledger.incomplete())
    words = run.command
    if run.done and chance.random() < 0.5:
        words = ("resume", run.name, "--display", "none", *(("--allow-address", "{server}") if run.model else ()))
    command = _kill(chance, _vary(chance, Command(words, patience=3)), 0.35, 6)
    return Step("resume", ((command,),), (run.name,), failing=chance.choice([0, 0, 0.2]))


def judge(chance: Random, ledger: Ledger) -> Step | None:
    """Judge a complete run with a model behind the server."""
    runs = [run for run in ledger.complete() if "cmc-bench" in run.command and run.judged < 2]
    if not runs:
        return None
    run, model = chance.choice(runs), f"j{ledger.number}"
    words = ("judge", run.name, "--judge", f"endpoint:{model}@{{server}}", "--allow-address", "{server}")
    command = _vary(
        chance,
        Command((*words, "--concurrency", str(CONCURRENCY), "--attempts", "12", "--display", "none"), patience=2),
    )
    killed = _kill(chance, command, 0.5, 6)
    return Step("judge", _with_repeat(killed, command), (run.name,), judges=(model,), failing=chance.choice([0, 0.2]))


def import_answers(chance: Random, ledger: Ledger) -> Step | None:
    """Import answers that somebody else made up."""
    runs = [run for run in ledger.complete() if "charts" in run.command]
    if not runs:
        return None
    number, run = ledger.number, chance.choice(runs)
    name, file = f"imported-{number}", f"{chance.choice(ODD_FILES)}{number}.jsonl"
    text = "\n".join(f'{{"id": "{{id {ordinal}}}", "answer": "{chance.choice([12, 30, 45])}"}}' for ordinal in range(8))
    words = ("import", f"./{file}", "--benchmark", "cmc-bench", "--data", "charts", "--model", "theirs", "--name", name)
    command = _vary(chance, Command((*words, "--display", "none")))
    killed = _kill(chance, command, 0.4, 3)
    stages = _with_repeat(killed, command)
    return Step("import", stages, (name,), (Run(name, command.arguments),), ids_of=run.name, files=((file, text),))


def override(chance: Random, ledger: Ledger) -> Step | None:
    """Override a label, and undo that."""
    runs = [run for run in ledger.complete() if "charts" in run.command]
    if not runs:
        return None
    run, person = chance.choice(runs), chance.choice(["me", "A.b-c_9"])
    words = ("override", run.name, "{id 0}")
    label = chance.choice(["IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN"])
    do = Command((*words, label, f"--as={person}", "--reason", "so \u202e said"))
    undo = Command((*words, f"--as={person}", "--undo"))
    stages = ((do,), (undo,)) if chance.random() < 0.7 else ((do,),)
    return Step("override", stages, (run.name,), ids_of=run.name)


def label(chance: Random, ledger: Ledger) -> Step | None:
    """Write a sheet of answers to label."""
    if not ledger.complete():
        return None
    run = chance.choice(ledger.complete())
    words = ("label", run.name, "--as", "labeller", "--n", "3", "--export", f"./{chance.choice(ODD_FILES)}.csv")
    return Step("label", ((_vary(chance, Command(words)),),), (run.name,))


def delete(chance: Random, ledger: Ledger) -> Step | None:
    """Delete a run, and restore it in most cases."""
    if not ledger.complete():
        return None
    run = chance.choice(ledger.complete())
    prune = Command(("runs", "--prune", "--keep", "0", "--match", run.name, "--include-used", "--yes"))
    restore = Command(("runs", "--restore"))
    killed = _kill(chance, prune, 0.3, 1.5)
    if chance.random() < 0.25:
        return Step("delete", ((prune,),), deletes=(run.name,))
    return Step("restore", ((replace(killed, codes=(0, 2)),), (replace(restore, codes=(0, 2)),)), (run.name,))


def export(chance: Random, ledger: Ledger) -> Step | None:
    """Export a run's files, or bundle and open them."""
    if not ledger.complete():
        return None
    run, out = chance.choice(ledger.complete()), f"./out/{chance.choice(ODD_FILES)}"
    forms = ["csv,json", "md,latex", "parquet,html", "lm-eval,inspect", "png,svg"]
    command = Command(("export", run.name, "--format", chance.choice(forms), f"--out={out}"))
    return Step("export", ((_kill(chance, _vary(chance, command), 0.3, 3),),), (run.name,))


def bundle(chance: Random, ledger: Ledger) -> Step | None:
    """Bundle a run, and import the bundle into another workspace."""
    if not ledger.complete():
        return None
    run, number = chance.choice(ledger.complete()), ledger.number
    file = f"./{chance.choice(ODD_FILES)}{number}.zip"
    write = Command(("bundle", run.name, f"--out={file}", "--media", "all"))
    other = f"{{home}}/data/other-{number}"
    read = Command(("--workspace", other, "open", file, "--import", "--yes"))
    exported = Command(
        ("--workspace", other, "export", run.name, "--canonical", f"--out={{home}}/desk/bundled/{run.name}")
    )
    killed = _kill(chance, write, 0.4, 3)
    stages = ((killed,),) if killed.signal else ()
    return Step(
        "bundle",
        (*stages, (replace(write, codes=(0, 2) if killed.signal else (0,)),), (read,), (exported,)),
        (run.name,),
    )


def _looks(chance: Random, ledger: Ledger, count: int) -> tuple[Command, ...]:
    """Draw commands that change nothing, each at most once; needs a complete run."""
    run, other = chance.choice(ledger.complete()), chance.choice(ledger.complete())
    choices: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
        (("show", run.name), (0,)),
        (("show", run.name, "--spec"), (0,)),
        (("runs", "--json"), (0,)),
        (("compare", run.name, other.name), (0, 2)),
        (("compare", run.name, other.name, "--flips", "--json"), (0, 2)),
        (("report", run.name, "--out", "./report"), (0, 2)),
        (("doctor", run.name), (0,)),
        (("doctor",), (0, 1)),
        (("sets",), (0,)),
        (("models",), (0,)),
        (("trainings", "--json"), (0,)),
        (("history", "charts"), (0, 2)),
        (("view", run.name, "--save", f"./page {chance.random():.6f}.html"), (0,)),
    ]
    return tuple(_vary(chance, Command(words, codes, patience=2)) for words, codes in chance.sample(choices, count))


def look(chance: Random, ledger: Ledger) -> Step | None:
    """Look at runs with commands that change nothing, some of them at the same time."""
    if not ledger.complete():
        return None
    return Step("look", (_looks(chance, ledger, 3), _looks(chance, ledger, 2)))


def view(chance: Random, ledger: Ledger) -> Step | None:
    """Serve the page of answers, of a run that answers at the same time in some cases; request it, and end the server."""
    begun = [run for run in ledger.present() if run.done]
    if not begun:
        return None
    run = chance.choice(begun)
    command = Command(("view", run.name, "--no-browser"), (0,), chance.choice(["TERM", "INT", "HUP", "KILL"]), 2.0)
    command = replace(command, browses=True)
    if run.complete:
        return Step("view", ((command,),))
    return Step("view", ((Command(run.command, patience=3), command),), (run.name,))


def build(chance: Random, ledger: Ledger) -> Step | None:
    """Build a question set from a table, edited or not."""
    number = ledger.number
    name = chance.choice([*ledger.sets, f"set-{number}", f"set-{number}"])
    words = ("build", "cmc-bench", "--from", f"{{home}}/tables/{chance.choice('abc')}.csv", "--name", name)
    command = _vary(chance, Command(words))
    killed = _kill(chance, command, 0.5, 3)
    return Step("build", _with_repeat(killed, command), builds=(name,))


def _for_two(chance: Random, ledger: Ledger) -> Step:
    """Draw what two users do, of everything that only one of them can do at a time."""
    actions = (begin, begin, begin, resume, judge, build, train, get)
    while True:
        step = chance.choice(actions)(chance, ledger)
        if step is not None:
            return step


def twice(chance: Random, ledger: Ledger) -> Step | None:
    """Let two or three users do the same at the same time, or begin different runs; in some cases one is killed."""
    if chance.random() < 0.15:
        run, other = _spec(chance, ledger), _spec(chance, replace(ledger, number=ledger.number + 10**5))
        first, second = Command(run.command, patience=3), Command(other.command, linked=True, patience=3)
        return Step("twice", ((first, second),), (run.name, other.name), (run, other))
    step = _for_two(chance, ledger)
    command = step.stages[-1][0]
    calm = replace(command, signal="", after=0.0, codes=(*command.codes, 4), patience=4)
    users = [replace(calm, linked=bool(number % 2)) for number in range(chance.choice([2, 2, 3]))]
    users[0] = _kill(chance, users[0], 0.2, 6)
    return replace(step, action="twice", stages=(tuple(users),))


def readers(chance: Random, ledger: Ledger) -> Step | None:
    """Let others look and export while a run answers."""
    if not ledger.complete():
        return None
    run, done = _spec(chance, ledger), chance.choice(ledger.complete())
    writer = _kill(chance, Command(run.command, patience=3), 0.3, 6)
    out = f"--out=./out/beside-{done.name}"
    return Step(
        "readers",
        ((writer, Command(("export", done.name, out), linked=True, patience=2), *_looks(chance, ledger, 2)),),
        (run.name, done.name),
        (run,),
    )


def wrong(chance: Random, ledger: Ledger) -> Step | None:
    """Make a mistake, which creates nothing."""
    good = ("batch", "--benchmark", "cmc-bench", "--data", "charts", "--model", "policy:uniform")
    choices = (
        (*good, f"--name={chance.choice(REFUSED_NAMES)}"),
        (*good, "--limit", "0"),
        (*good, "--max-tokens", "1e9"),
        (*good, "--judge", "no-such"),
        (*good[:-1], "policy:no-such"),
        ("show", "no-such-run"),
        ("export", chance.choice(REFUSED_NAMES) or "x/y"),
        ("batch", "no-such.toml"),
        ("import", "./no-such.jsonl", "--benchmark", "cmc-bench", "--model", "m"),
        ("override", "no-such", "id", "IMAGE", "--as", "me"),
        ("build", "cmc-bench", "--from", "./no-such.csv"),
        ("no-such-command",),
    )
    return Step("wrong", ((_vary(chance, Command(chance.choice(choices), (2,))),),))


def train(chance: Random, ledger: Ledger) -> Step | None:
    """Train the demo model for a few updates, or resume a training."""
    unfinished = [training for training in ledger.trainings.values() if not training.complete]
    name = f"training-{ledger.number}"
    words = ("train", "--model", "{demo}", "--data", "{home}/training", "--steps", "3", "--batch-size", "1")
    training = Training(name, (*words, "--check-rows", "0", "--name", name))
    if unfinished and chance.random() < 0.7:
        training = chance.choice(unfinished)
    command = Command(training.command, (0, 5, 6), patience=4)
    return Step("train", ((_kill(chance, command, 0.5, 10),),), trains=(training,))


def get(chance: Random, ledger: Ledger) -> Step | None:
    """Fetch a model from the Hub, which fails in some cases."""
    command = Command(("models", "get", f"soak/tiny-{chance.randrange(3)}", "--yes"), patience=2)
    killed = _kill(chance, command, 0.5, 4)
    return Step("get", _with_repeat(killed, command), failing=chance.choice([0, 0.3]))


def small_disk(chance: Random, ledger: Ledger) -> Step | None:
    """Run on a disk that is full, then make room and repeat the command."""
    model, size = chance.choice(POLICIES["charts"]), round(chance.uniform(0.05, 0.6), 3)
    words = ("--workspace", "{disk}/workspace", "batch", "--benchmark", "cmc-bench", "--data", "{disk}/charts")
    command = Command((*words, "--model", model, "--name", "small", "--display", "none"), (0, 3), megabytes=size)
    return Step("small disk", ((replace(command, patience=3),),))


ACTIONS: dict[str, tuple[int, Action]] = {
    "begin": (20, begin),
    "resume": (24, resume),
    "judge": (6, judge),
    "import": (5, import_answers),
    "override": (4, override),
    "label": (2, label),
    "delete": (5, delete),
    "export": (6, export),
    "bundle": (5, bundle),
    "look": (12, look),
    "view": (5, view),
    "build": (5, build),
    "twice": (22, twice),
    "readers": (5, readers),
    "wrong": (5, wrong),
    "train": (4, train),
    "get": (4, get),
    "small disk": (3, small_disk),
    "interface": (10, interface),
}


def draw(chance: Random, ledger: Ledger, only: tuple[str, ...] = ()) -> Step:
    """Draw the next step."""
    names = [name for name in ACTIONS if not only or name in only]
    while True:
        name = chance.choices(names, [ACTIONS[name][0] for name in names])[0]
        step = ACTIONS[name][1](chance, ledger)
        if step is not None:
            return step
