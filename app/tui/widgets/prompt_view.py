"""PromptView: the exact prompt of one instance after the other, with its picture, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.new_run.prompt_preview import PromptRenderer, RenderedPrompt, media_of, requests
from app.report.media import media_path
from app.run_spec import RunSpec
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.widgets.picture import Picture
from benchmarks.base import Instance, Message, Part, Request, Text
from benchmarks.build import Build


class PromptView(VerticalScroll, can_focus=True):
    """Give it a run's instances by :meth:`show`; ``screen.in_thread`` does its work."""

    name_ = "preview"
    BINDINGS: ClassVar = bindings("preview")
    DEFAULT_CSS = """
    PromptView { height: 1fr; }
    PromptView:focus #where { color: $accent; }
    PromptView #where { height: 1; color: #b0b0b0; }
    PromptView Horizontal { height: auto; }
    PromptView #texts { width: 3fr; height: auto; padding-right: 1; }
    PromptView Picture { width: 2fr; height: 12; }
    .-tall PromptView Picture { height: 20; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._run: RunSpec | None = None
        self._build: Build | None = None
        self._instances: Sequence[Instance] = ()
        self._place = 0
        self._renderer: PromptRenderer | None = None

    def compose(self) -> ComposeResult:
        yield Static(Content("choose a benchmark and a model, and what is asked stands here"), id="where")
        with Horizontal():
            yield Static("", id="texts")
            yield Picture(facts=True)

    def show(self, run: RunSpec, instances: Sequence[Instance], build: Build) -> None:
        """Show what ``run`` asks; the place stays where it was, if there is still such a place."""
        if (run, build) == (self._run, self._build) and instances is self._instances:
            return
        if self._renderer is None or self._renderer.model != run.model:
            self.end()
            self._renderer = PromptRenderer(run.model)
        self._run, self._build, self._instances = run, build, instances
        self._place = min(self._place, max(0, len(instances) - 1))
        self._draw()

    def end(self) -> None:
        """Let go of what was started for it."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def on_unmount(self) -> None:
        self.end()

    def action_next(self) -> None:
        self._go(1)

    def action_previous(self) -> None:
        self._go(-1)

    def _go(self, by: int) -> None:
        if self._instances:
            self._place = (self._place + by) % len(self._instances)
            self._draw()
            self.scroll_home(animate=False)

    def _draw(self) -> None:
        if self._run is None or self._build is None or not self._instances:
            return
        instance = self._instances[self._place]
        where = f"{self._place + 1} of {len(self._instances)}   {instance.condition}   {instance.id}"
        self.query_one("#where", Static).update(literal(where, limit=200))
        asked = requests(self._run, instance)
        self._write(asked, Content.styled("asking the model's tokenizer ...", "#909090"))
        media = next(iter(media_of(asked[0])), None)
        self.query_one(Picture).show(media, media_path(self._build.path, media) if media else None)
        renderer: Any = self._renderer
        screen: Any = self.screen
        screen.in_thread(partial(renderer.rendered, asked[0]), partial(self._rendered, asked), group="render")

    def _rendered(self, asked: Sequence[Request], rendered: RenderedPrompt) -> None:
        known = rendered.text is not None
        text = rendered.text if known else rendered.why
        self._write(asked, literal(text, "" if known else "#909090", newlines=True))

    def _write(self, asked: Sequence[Request], rendered: Content) -> None:
        lines = [_head("as it is asked"), _messages(asked[0].messages)]
        if len(asked) > 1:
            lines += [
                _head(f"after {len(asked) - 1} answers, here as dots, it goes on"),
                _messages(asked[-1].messages[-1:]),
            ]
        lines += [_head("as the model is given it, images by their marks"), rendered]
        self.query_one("#texts", Static).update(Content("\n").join(lines))


def _head(text: str) -> Content:
    return Content.styled(text, "bold")


def _messages(messages: Sequence[Message]) -> Content:
    """The messages, with each medium in its place."""
    lines = []
    for message in messages:
        parts = [Content.styled(f"{message.role}: ", "#56b4e9")]
        parts += [_part(part) for part in message.parts]
        lines.append(Content.assemble(*parts))
    return Content("\n").join(lines)


def _part(part: Part) -> Content:
    if isinstance(part, Text):
        return literal(part.text, newlines=True)
    marks = f", {len(part.marks)} boxes drawn" if part.marks else ""
    return literal(f"⟦{part.modality} {part.sha256[:8]}{part.suffix}{marks}⟧", "#f0e442")
