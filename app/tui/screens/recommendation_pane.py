"""Contents of the recommendation's pane, and the dialogs for its margin, costs and limits."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from app.compare.decision.utility_metric import parse_requirements
from app.compare.recommend.recommendation import Recommendation
from app.text.percentage_points import format_points
from app.tui.hostile_text import literal
from app.tui.screen_services import Services
from app.tui.theme import DIM, HEADING
from app.tui.widgets.dialogs import TextDialog
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Table


def cost_ratios_content(recommendation: Recommendation | str) -> Table | str:
    """Return the best run at each cost ratio, or why there is none."""
    if isinstance(recommendation, str):
        return recommendation
    return recommendation.cost_ratios or "Costs need a model's run, of a benchmark whose labels tell abstentions."


def recommendation_text(recommendation: Recommendation | str, tuning_verdict: str) -> Content:
    """Return the recommendation with its reasons, the behaviour of the runs, and what is not established."""
    verdict = [literal(tuning_verdict, "bold")] if tuning_verdict else []
    if isinstance(recommendation, str):
        return Content("\n").join(verdict)
    margin = format_points(recommendation.decision.margin)
    text = [
        *verdict,
        literal(recommendation.summary, "bold"),
        Content.styled(f"Margin: {margin} points; + and - change it, m enters it. u enters costs and limits.", DIM),
    ]
    for title, lines in (*recommendation.reasons.items(), *recommendation.open_questions.items()):
        text += [Content(""), Content.styled(title, f"bold {HEADING}"), *(literal(f"- {line}") for line in lines)]
    return Content("\n").join(text)


def ask_margin(app: Services, margin: float, then: Callable[[float], None]) -> None:
    """Ask for a margin in percentage points, and call ``then`` with it as a share."""

    def on_input(text: str | None) -> None:
        if text is not None:
            then(float(text) / 100)

    dialog = TextDialog(
        "Margin: percentage points below the best run",
        "Choose the margin before you look at the results.",
        value=format_points(margin),
        check=_margin_problem,
    )
    app.push_screen(dialog, on_input)


def ask_requirements(app: Services, requirements: str, then: Callable[[str], None]) -> None:
    """Ask for costs and limits, and call ``then`` with the text."""

    def on_input(text: str | None) -> None:
        if text is not None:
            then(text)

    dialog = TextDialog(
        "Costs and limits",
        "Costs of mistakes: wrong=1,needless=0.2,missed=3. conflict=0.1: the share of your questions with one. Limits: "
        "memory=8,disk=5 (GB), seconds=2. Empty: decision accuracy, without limits.",
        value=requirements,
        check=_requirements_problem,
    )
    app.push_screen(dialog, on_input)


def _margin_problem(text: str) -> str:
    try:
        return "" if 0 < float(text) < 100 else "Enter more than 0 and less than 100, such as 3."
    except ValueError:
        return "Enter a number, such as 3 or 0.5."


def _requirements_problem(text: str) -> str:
    try:
        parse_requirements(text)
    except RashomonError as error:
        return str(error)
    return ""
