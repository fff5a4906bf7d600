"""``rashomon recommend``: the recommended run, or the sample size a recommendation needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.commands.terminal.spinner import spinner
from app.compare.decision.resource_limits import NO_LIMITS, Limits
from app.compare.decision.sample_size import plan as plan_runs
from app.compare.decision.utility_metric import UserCosts
from app.compare.recommend.recommendation import recommend as decide
from app.json_output.json_envelope import print_json
from app.json_output.recommendation_json import SampleSizePlan, recommended_runs
from app.json_output.tables_json import table_json
from app.report.tables.judge_selection import judge_of
from app.report.tables.table_rendering import print_table
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from benchmarks.tables.abstention_quality import Costs


@dataclass(frozen=True, slots=True)
class RecommendArguments:
    """The options of ``rashomon recommend``; ``width`` is the interval's width that a ``plan`` is for."""

    judge: str | None = None
    margin: float = 0.03
    metric: str | None = None
    lower_is_better: bool = False
    costs: str | None = None
    conflict_share: float | None = None
    trust: str | None = None
    max_memory: float | None = None
    max_seconds: float | None = None
    max_disk: float | None = None
    plan: bool = False
    all_tables: bool = False
    width: float = 0.05
    as_json: bool = False

    @property
    def user(self) -> UserCosts | None:
        """The user's costs; None if none are given."""
        if self.costs is None and self.conflict_share is None:
            return None
        return UserCosts(Costs.parse(self.costs or ""), self.conflict_share)

    @property
    def limits(self) -> Limits:
        """The limits on a recommended run."""
        return Limits(self.max_memory, self.max_seconds, self.max_disk)


def recommend(workspace: Workspace, runs: Sequence[str], arguments: RecommendArguments) -> None:
    """Print the recommended run; with ``plan``, print instead how many examples are needed.

    These are for showing the margin, or, of a single run, for an interval of ``width``; ``all_tables`` adds a table of metrics.
    """
    user, limits = arguments.user, arguments.limits
    folders = run_folders(workspace, runs)
    if arguments.plan:
        if user is not None or limits != NO_LIMITS:
            raise SpecError("a plan takes no costs, conflict share or limits; leave these out, or --plan.")
        with spinner(f"reading {len(folders)} runs"):
            sentence, table = plan_runs(
                folders,
                judge=arguments.judge,
                width=arguments.width,
                margin=arguments.margin,
                metric=arguments.metric,
                lower_is_better=arguments.lower_is_better,
                trust=arguments.trust,
            )
        if arguments.as_json:
            planned = SampleSizePlan(answer=sentence, table=table_json(table))
            print_json("recommend", planned, folders=folders, judge=judge_of(folders, arguments.judge))
            return
        print(clean(sentence))
        if arguments.all_tables:
            print()
            print_table(table)
        else:
            print("--all prints what each metric takes.")
        return
    with spinner(f"comparing {len(folders)} runs"):
        recommendation = decide(
            folders,
            judge=arguments.judge,
            margin=arguments.margin,
            metric=arguments.metric,
            lower_is_better=arguments.lower_is_better,
            user=user,
            limits=limits,
            trust=arguments.trust,
        )
    hints = []
    if recommendation.by_rule:
        hints.append("Say what should win with --trust image, text or flag.")
    if recommendation.bounds and (user is None or user.conflict_share is None):
        hints.append("--conflict-share says how many of your questions have a conflict.")
    if arguments.as_json:
        judge = recommendation.decision.basis.views.judge
        print_json("recommend", recommended_runs(recommendation, hints), folders=folders, judge=judge)
        return
    print("\n".join(clean(line) for line in (*recommendation.advice, *hints)))
    print()
    print_table(recommendation.table)
    if recommendation.single_sources is not None:
        print_table(recommendation.single_sources)
    if recommendation.cost_ratios is not None:
        print_table(recommendation.cost_ratios)
    for title, lines in (
        ("How they differ", recommendation.behaviour),
        ("What remains unknown", recommendation.caveats),
        recommendation.to_try,
    ):
        if lines:
            print(title)
            print("\n".join(f"  {clean(line)}" for line in lines))
