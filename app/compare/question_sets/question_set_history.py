"""History of a question set: every model that was asked it, on the rows common to all, and the claims about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.compare.decision.model_claims import BETTER, NOT_SHOWN, WORSE, Claim, claims
from app.compare.decision.target_shares import TargetShares, target_shares
from app.compare.decision.trust_metric import OBEDIENCE, decisive_target, rules_of
from app.compare.question_sets.common_answers import on_common_answers, prompt_settings
from app.compare.runs.cost_tables import cost_cells
from app.compare.runs.run_view import RunView, RunViews
from app.compare.runs.view_reader import load_views
from app.report.tables.run_labels import model_label, unique_labels
from app.store.question_set_runs import SetRun, all_subjects, newest_runs, read_runs
from app.store.question_sets import QuestionSet
from app.store.tried_models import TriedModels
from app.store.workspace import Workspace
from app.text.percentage_points import format_points
from app.text.plural import count_of
from app.text.shell_quoting import shell_quote
from benchmarks.answer_behaviour import name_rules
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import INTERVALS
from benchmarks.vocabulary import Cell, Estimate, Table


@dataclass(frozen=True)
class SetHistory:
    """The models of a set on the answers that all of them gave.

    Attributes:
        runs: The run of each model, in the order in which they were tried.
        left_out: The runs that share too few answers with the others.
        tried: The number of models tried, with those that have no complete run; of decisions, on the held-out rows.
        every: All runs of the set that were begun.
        incumbent: The index of the incumbent among the runs; None for the best so far.
        rule: The rule by which an answer gets credit, as in :func:`name_rules`; "" for right answers.
        unbeaten: The policies and baselines that no model has a higher share than, with their shares of these answers.
        decisions: A clause on each decision on the held-out rows; empty in the history of a trial.
    """

    question_set: QuestionSet
    runs: tuple[SetRun, ...]
    left_out: tuple[SetRun, ...]
    tried: int
    every: tuple[SetRun, ...]
    shares: TargetShares
    incumbent: int | None = None
    rule: str = ""
    unbeaten: tuple[tuple[str, float], ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def views(self) -> RunViews:
        return self.shares.views

    @cached_property
    def claims(self) -> dict[int, Claim]:
        """The claim about each run, by its index."""
        every = claims(self.shares, self.incumbent, tests=self.comparisons, seed=self.views.seed)
        return {claim.run: claim for claim in every}

    @property
    def comparisons(self) -> int:
        """The number of comparisons that the claims are corrected for."""
        return self.tried if all(run.is_final for run in self.runs) else self.tried - 1

    def share(self, run: int, rival: int | None = None) -> Estimate:
        """Return a run's share with its interval, over its answers with a known label, and with one of a ``rival``, too."""
        of = self.shares.credits
        known = ~np.isnan(of.hit[:, [run, run if rival is None else rival]]).any(1)
        share = (
            of.clusters.at(known).mean(of.hit[known, run]) if known.any() else Estimate(None, reason="no known label")
        )
        return replace(share, missing=int((~known).sum()))

    @property
    def answers(self) -> int:
        """The number of answers that were asked of all models."""
        return len(self.shares.credits.group)

    @property
    def rows(self) -> int:
        """The number of examples of these answers."""
        return len(np.unique(self.shares.credits.group))

    def lead(self, run: int) -> Estimate:
        """Return a run's lead with its interval; n/a where no claim is made."""
        claim = self.claims.get(run)
        if claim is None:
            return Estimate(None, reason="in use" if run == self.incumbent else "no other model")
        return Estimate(claim.lead, claim.low, claim.high, self.answers)

    def look(self, run: int) -> str:
        """Return "first" for a model that was not tried before with other prompts, settings or weights, else "again"."""
        seen = [other.model for other in self.runs[:run]]
        return "again" if self.runs[run].model in seen else "first"

    def versions(self, run: int) -> str:
        """Return the versions of the set that a model was asked."""
        numbers = {other.version for other in self.every if other.subject == self.runs[run].subject and other.complete}
        return ", ".join(map(str, sorted(numbers)))


def set_history(
    workspace: Workspace,
    question_set: QuestionSet,
    tried: TriedModels,
    *,
    trust: str | None,
    judge: str | None = None,
    candidate: str = "",
    against: str = "",
    final: bool = False,
) -> SetHistory:
    """Return the history of a set.

    Policies are left out unless they are the ``candidate``, a subject, or ``against``, the model to compare with. With ``final``
    these two alone are compared, on the held-out rows. Raises SpecError if no run is complete.
    """
    every = read_runs(workspace, question_set)
    newest = newest_runs(every, tried, final=final)
    pair = [run for run in newest if candidate == run.subject or against == run.model]
    chosen, policies = (pair, []) if final else _models_and_policies(newest, pair)
    if not chosen:
        raise SpecError(f"no model has answered the set {question_set.name} yet; `rashomon try MODEL` asks one.")
    views = _views(workspace, [*chosen, *policies], judge)
    measure = next((i for i, run in enumerate(chosen) if run.subject == candidate), len(chosen) - 1)
    named = [bool(against) and run.model == against for run in chosen]
    used, compared, policy_views = on_common_answers(views, measure, named)
    runs = tuple(chosen[i] for i in used)
    is_named = [named[i] for i in used]
    if candidate:
        _check_asked(against, named, is_named)
    target = decisive_target(compared, trust)
    history = SetHistory(
        question_set,
        runs,
        left_out=tuple(run for run in chosen if run not in runs),
        tried=len(tried.decisions) if final else max(len(all_subjects(every, tried)), len(runs)),
        every=tuple(every),
        shares=target_shares(compared, target, jointly=False),
        incumbent=_incumbent([views.runs[i] for i in used], is_named, views.runs[measure]),
        rule=_rule(compared, trust) if target.name == OBEDIENCE else "",
    )
    decisions = () if candidate or final else _decisions(workspace, question_set, tried, every, trust, judge)
    return replace(history, unbeaten=_unbeaten(history, policy_views), decisions=tuple(decisions))


def _models_and_policies(newest: Sequence[SetRun], pair: Sequence[SetRun]) -> tuple[list[SetRun], list[SetRun]]:
    """Return the runs of models, with those of a ``pair`` whatever they are, and the other runs of policies."""
    chosen = [run for run in newest if run.is_model or run in pair]
    return chosen, [run for run in newest if run.is_policy and run not in chosen]


def _check_asked(against: str, named: Sequence[bool], used: Sequence[bool]) -> None:
    """Raise SpecError if no run of the model ``against`` is compared."""
    if any(named) and not any(used):
        raise SpecError(f"{against} was asked none of these rows; `rashomon try {shell_quote(against)}` asks it again.")


def _rule(views: RunViews, trust: str | None) -> str:
    return name_rules(rules_of(views, trust)) or trust or ""


def _incumbent(runs: Sequence[RunView], named: Sequence[bool], measured: RunView) -> int | None:
    """Return the place of the newest named run, of those with the measured one's prompts if any has them; None without any."""
    incumbents = [place for place, is_named in enumerate(named) if is_named]
    alike = [place for place in incumbents if prompt_settings(runs[place]) == prompt_settings(measured)]
    return max(alike or incumbents, default=None)


def _views(workspace: Workspace, runs: Sequence[SetRun], judge: str | None) -> RunViews:
    """Return the views of runs, labelled by their models."""
    views = load_views([workspace.runs_folder / run.name for run in runs], judge=judge)
    labels = unique_labels([model_label(run.model) for run in runs])
    return replace(views, runs=tuple(replace(v, label=label) for v, label in zip(views.runs, labels, strict=True)))


def _decisions(
    workspace: Workspace,
    question_set: QuestionSet,
    tried: TriedModels,
    every: Sequence[SetRun],
    trust: str | None,
    judge: str | None,
) -> Iterator[str]:
    """Yield a clause on each decision on the held-out rows: its models, the verdict, the lead and the rows."""
    models = {run.subject: run.model for run in newest_runs(every, tried, final=True)}
    for candidate, rival in tried.decisions:
        if not {candidate, rival} <= models.keys():
            yield "one whose answers are gone"
            continue
        against = models[rival]
        try:
            history = set_history(
                workspace,
                question_set,
                tried,
                trust=trust,
                judge=judge,
                candidate=candidate,
                against=against,
                final=True,
            )
        except SpecError:  # since then, one of them was asked other rows
            yield f"{model_label(models[candidate])} beside {model_label(against)}: no row in common any more"
            continue
        labels = [view.label for view in history.views.runs]
        for claim in history.claims.values():
            ends = f"{format_points(claim.low, sign=True)} to {format_points(claim.high, sign=True)} points"
            rows = count_of(history.rows, "row")
            yield f"{labels[claim.run]} beside {labels[claim.rival]}: {claim.verdict} ({ends}, {rows})"


def _unbeaten(history: SetHistory, policies: Sequence[RunView]) -> tuple[tuple[str, float], ...]:
    """Return the policies, on the answers of a history, that no model has a higher share than, with their shares."""
    if not policies:
        return ()
    shares = target_shares(
        replace(history.views, runs=(*history.views.runs, *policies)), history.shares.metric, jointly=False
    )
    every = replace(history, shares=shares)
    models = len(history.runs)
    best = max(history.share(run).value or 0.0 for run in range(models))
    own = ((policy.label, every.share(models + place).value) for place, policy in enumerate(policies))
    return tuple((label, share) for label, share in own if share is not None and share >= best)


def unbeaten_sentence(policy: tuple[str, float]) -> str:
    """Say that no model beats a policy, given by its label and its share."""
    return f"{policy[0]} has {policy[1]:.0%}: no model beats it."


def headline(history: SetHistory) -> str:
    """Return in one or two sentences which models are shown to be better or worse, and beside which."""
    labels = [view.label for view in history.views.runs]
    verdicts = {place: claim.verdict for place, claim in history.claims.items()}
    parts = [
        f"{words} {', '.join(labels[place] for place, verdict in verdicts.items() if verdict == wanted)}."
        for wanted, words in ((BETTER, "Shown to be better:"), (WORSE, "Shown to be worse:"))
        if wanted in verdicts.values()
    ]
    pages = history.shares.credits.clusters.count
    if history.incumbent is not None:
        beside = f"Beside {labels[history.incumbent]}, the model in use"
    else:
        beside = "Beside the best of the others, as no model in use is named (`rashomon try MODEL --against MODEL`)"
    shown = " ".join(parts) or "no model is shown to be better or worse; that does not make them equal."
    basis = f"{count_of(history.answers, 'answer')} about {count_of(pages, 'page')}"
    return " ".join([f"{beside}, on {basis}: {shown}", *map(unbeaten_sentence, history.unbeaten)])


def history_table(history: SetHistory) -> Table:
    """Return a row for each model, in the order in which they were tried."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for place, run in enumerate(history.views.runs):
        claim = history.claims.get(place)
        lead = None if claim is None else history.lead(place)
        verdict = "in use" if place == history.incumbent else NOT_SHOWN if claim is None else claim.verdict
        _, seconds, peak, _ = cost_cells(run)
        rows.append(
            (
                run.label,
                (history.share(place), lead, verdict, history.look(place), history.versions(place), peak, seconds),
            )
        )
    beside = "the model in use" if history.incumbent is not None else "the best of the others"
    notes = (
        headline(history),
        f"share: {rule_words(history)}; n: those of the {count_of(history.answers, 'answer')} whose label is known, all if it is "
        "left out; the others are undecided, unparsed or errors, and count against any claim. "
        f"lead: the share beyond that of {beside}, on the answers known of both, so it may differ from the difference of the "
        "shares. not shown: neither better nor worse is shown. The intervals of leads and the verdicts are corrected for the "
        f"{count_of(history.tried, 'model')} tried on this set (Holm 1979).",
        "look: again for a model that was tried before with other prompts, settings or weights, whose choice the rows may have "
        "guided. version: the version of the set that the model was asked.",
        INTERVALS,
        *([f"Decided on the held-out rows: {'; '.join(history.decisions)}."] if history.decisions else []),
        *(
            f"Left out: {model_label(run.model)}, which shares too few answers; try it again."
            for run in history.left_out
        ),
    )
    columns = ("share", "lead", "verdict", "look", "version", "peak memory, GB", "seconds per answer")
    return Table("history", f"Models tried on {history.question_set.name}", columns, tuple(rows), notes)


def history_leads(history: SetHistory) -> list[tuple[str, Estimate]]:
    """Return the label and the lead of each model, in the order in which they were tried; n/a where no claim is made."""
    return [(f"{place + 1} {run.label}", history.lead(place)) for place, run in enumerate(history.views.runs)]


def rule_words(history: SetHistory) -> str:
    """Return in words what the share is."""
    metric = history.shares.metric
    return metric.note or "the share of right answers"


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """An answer to ``instance`` that two runs give differently; ``change`` is "gained", "lost" or "differs"."""

    instance: str
    group: str
    question: str
    before: str
    after: str
    change: str


def changed_answers(history: SetHistory, claim: Claim, count: int) -> list[ChangedAnswer]:
    """Return the answers of a claim's run that differ most from the rival's, of different examples.

    Those whose credit changes come first: gains before losses if the run is better, else losses before gains; of these, by the
    change in their whole example.
    """
    run, rival = claim.run, claim.rival
    of, runs = history.shares.credits, history.views.runs
    lead = np.nan_to_num(of.hit[:, run] - of.hit[:, rival])
    by_example = np.bincount(of.group, np.abs(lead), minlength=int(of.group.max()) + 1)[of.group]
    differs = of.label[:, run] != of.label[:, rival]
    direction = lead if claim.verdict != BETTER else -lead
    order = np.lexsort((np.arange(len(lead)), -by_example, direction, lead == 0, ~differs))
    chosen: dict[int, int] = {}
    for place in order[: int(differs.sum())].tolist():
        if len(chosen) < count:
            chosen.setdefault(int(of.group[place]), place)
    ids = [of.ids[place] for place in chosen.values()]
    return list(_changes(runs[rival], runs[run], ids, [float(lead[place]) for place in chosen.values()]))


def _changes(first: RunView, second: RunView, ids: Sequence[str], leads: Sequence[float]) -> Iterator[ChangedAnswer]:
    before, after, records = first.excerpts(ids), second.excerpts(ids), dict(second.records(ids))
    for instance, lead in zip(ids, leads, strict=True):
        record = records[instance].instance
        change = "gained" if lead > 0 else "lost" if lead < 0 else "differs"
        yield ChangedAnswer(
            instance, record.group, record.question, before.get(instance, ""), after.get(instance, ""), change
        )
