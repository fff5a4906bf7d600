"""Preview of the exact prompts of a run, one instance at a time, with their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.new_run.prompt_preview import PromptRenderer, RenderedPrompt, media_of, preview_requests
from app.report.samples.sample_media import media_path
from app.run_spec import RunSpec
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.theme import DIM, HEADING, PARTIAL
from app.tui.widgets.terminal_picture import Picture
from benchmarks.build import Build
from benchmarks.vocabulary import Instance, Message, Part, Request, Text


class PromptView(VerticalScroll, can_focus=True):
    """The prompts of a run's instances, set by :meth:`show`; works in threads of its screen (``attempt``)."""

    name_ = "preview"
    BINDINGS: ClassVar = bindings("preview")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._run: RunSpec | None = None
        self._build: Build | None = None
        self._instances: Sequence[Instance] = ()
        self._place = 0
        self._renderer: PromptRenderer | None = None

    def compose(self) -> ComposeResult:
        yield Static(Content("select a benchmark and a model to see the prompts"), id="position")
        with Horizontal():
            yield Static("", id="texts")
            yield Picture(facts=True)

    def show(self, run: RunSpec, instances: Sequence[Instance], build: Build) -> None:
        """Show the prompts of ``run``, from the current position if it still exists."""
        if (run, build) == (self._run, self._build) and instances is self._instances:
            return
        if self._renderer is None or self._renderer.model != run.model:
            self.close_renderer()
            self._renderer = PromptRenderer(run.model)
        self._run, self._build, self._instances = run, build, instances
        self._place = min(self._place, max(0, len(instances) - 1))
        self._draw()

    def close_renderer(self) -> None:
        """Close the process that renders prompts."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def on_unmount(self) -> None:
        self.close_renderer()

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
        position = f"{self._place + 1:,} of {len(self._instances):,}   {instance.condition}   {instance.id}"
        self.query_one("#position", Static).update(literal(position, limit=200))
        steps = preview_requests(self._run, instance)
        self._write(steps, Content.styled("rendering with the model's chat template ...", DIM))
        media = next(iter(media_of(steps[0])), None)
        self.query_one(Picture).show(media, media_path(self._build.path, media) if media else None)
        renderer: Any = self._renderer
        screen: Any = self.screen
        screen.attempt(partial(renderer.render, steps[0]), partial(self._rendered, steps), group="render")

    def _rendered(self, steps: Sequence[Request], rendered: RenderedPrompt) -> None:
        known = rendered.text is not None
        text = rendered.text if known else rendered.reason
        self._write(steps, literal(text, "" if known else DIM, newlines=True))

    def _write(self, steps: Sequence[Request], rendered: Content) -> None:
        lines = [_head("messages"), _messages(steps[0].messages)]
        if len(steps) > 1:
            lines += [
                _head(f"last message, after {len(steps) - 1} answers (shown as dots)"),
                _messages(steps[-1].messages[-1:]),
            ]
        lines += [_head("model input, with placeholders for images"), rendered]
        self.query_one("#texts", Static).update(Content("\n").join(lines))


def _head(text: str) -> Content:
    return Content.styled(text, f"bold {HEADING}")


def _messages(messages: Sequence[Message]) -> Content:
    """Return the messages, with a placeholder for each medium."""
    lines = []
    for message in messages:
        parts = [Content.styled(f"{message.role}: ", HEADING)]
        parts += [_part(part) for part in message.parts]
        lines.append(Content.assemble(*parts))
    return Content("\n").join(lines)


def _part(part: Part) -> Content:
    if isinstance(part, Text):
        return literal(part.text, newlines=True)
    marks = f", {len(part.marks)} boxes drawn" if part.marks else ""
    return literal(f"⟦{part.modality} {part.sha256[:8]}{part.suffix}{marks}⟧", PARTIAL)
