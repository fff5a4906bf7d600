"""The estimate of a training before it starts: rows, updates, memory, disk, and its time by an earlier training of the model."""

from __future__ import annotations

from collections.abc import Iterator

from app.engine.training.training_folder import Training, read_trainings
from app.engine.training.training_log import read_curve
from app.engine.training.training_plan import TrainingPlan
from app.report.progress.remaining_time import duration
from app.store.workspace import Workspace
from app.text.plural import count_of
from mlx_backends.training_settings import LEAST_GAIN


def plan_lines(workspace: Workspace, plan: TrainingPlan) -> list[str]:
    """Return the lines that describe a training before it starts; names in them may be hostile."""
    settings, spec = plan.settings, plan.spec
    counts = ", ".join(f"{count_of(len(rows), 'row')} for {part}" for part, rows in plan.rows.items())
    preference = f", orpo with beta {spec.beta:g}" if spec.objective == "orpo" else ""
    rate = "" if settings.rates else f"{spec.learning_rate:g} "
    lines = [
        f"{plan.name}: {counts}, {count_of(settings.steps, 'update')} of {count_of(settings.batch_size, 'row')}",
        f"  rank {spec.rank}, alpha {spec.alpha:g}, dropout {spec.dropout:g}, rate {rate}({spec.schedule}){preference}",
    ]
    if settings.rates:
        tried, updates = len(settings.rates), settings.rate_updates
        noun = "update" if updates == 1 else "updates"
        lines.append(
            f"  search: {updates} {noun} with each of {tried} rates ({', '.join(f'{rate:g}' for rate in settings.rates)}), so "
            f"{tried * updates + settings.steps} updates in all"
        )
    if settings.check_every and plan.rows["validation"]:
        along = f", every {settings.check_every} updates" if settings.check_every < settings.steps else ""
        lines.append(
            f"  checks the answers to about {count_of(spec.check_rows, 'validation row')}: of the base{along}, and of the best "
            "adapter"
        )
    if settings.patience is not None and plan.rows["validation"]:
        lines.append(
            f"  ends early after {settings.patience} validations, one every {settings.validate_every} updates, without a loss "
            f"lower by {LEAST_GAIN:.0%}"
        )
    lines += [f"  memory: about {plan.memory.sentence()}", f"  disk: at most {plan.memory.disk / 1e9:.1f} GB"]
    return [*lines, *_time(workspace, plan)]


def _time(workspace: Workspace, plan: TrainingPlan) -> Iterator[str]:
    """Yield a line on the time of all updates, by the newest training of the same model that has some."""
    earlier = [training for training in read_trainings(workspace) if isinstance(training, Training)]
    for training in sorted(earlier, key=lambda training: training.created, reverse=True):
        if training.identity.get("model") != plan.identity["model"]:
            continue
        curve = read_curve(training.path)
        if curve.step and curve.seconds:
            row = curve.seconds / (curve.step * training.spec.batch_size)
            updates = plan.settings.steps + len(plan.settings.rates or ()) * plan.settings.rate_updates
            seconds = row * updates * plan.settings.batch_size
            yield f"  time: about {duration(seconds)} without validations, at the {row:.2g} s a row of {training.name}"
            return
