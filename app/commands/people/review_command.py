"""``rashomon review``: people's review of a build's rows, in the terminal or through a spreadsheet, and its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.annotation.review_outcomes import outcomes, review_tables
from app.annotation.review_session import Review, ReviewItem, ReviewSession, find_build, find_review
from app.annotation.review_sheet import read_sheet, write_sheet
from app.annotation.review_store import CHOICES, ReviewStore, session_lock
from app.annotation.reviewed_build import write_reviewed_build
from app.json_output.json_envelope import print_json
from app.json_output.people_json import ReviewedBuild, ReviewStatus
from app.json_output.tables_json import table_json
from app.report.runs.portable_facts import portable_path
from app.report.samples.sample_media import media_path
from app.report.tables.table_rendering import print_table
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import NoAccessError, SpecError
from benchmarks.review_guide import ReviewField
from benchmarks.untrusted.safe_files import check_file, replace_file
from benchmarks.untrusted.typed_paths import typed_path

_LINE = "─" * 60


@dataclass(frozen=True, slots=True)
class ReviewArguments:
    """The options of ``rashomon review``. Without an action, ``reviewer`` reviews in the terminal; without one, see status."""

    reviewer: str | None = None
    name: str | None = None
    share: float | None = None
    seed: int | None = None
    adjudicate: bool = False
    same_person: bool = False
    import_file: Path | None = None
    export_file: Path | None = None
    out: Path | None = None
    undecided: str | None = None
    required: int = 1
    replace: bool = False
    as_json: bool = False


def review(workspace: Workspace, build: str, arguments: ReviewArguments, *, ask: Callable[[str], str] = input) -> int:
    """Review a build, print the state of its review, or write the reviewed build; return the exit code.

    Raises ReviewChangedError if the build has changed since the review began, SpecError for options that exclude each other
    or need a reviewer.
    """
    actions = [arguments.import_file, arguments.export_file, arguments.out]
    if sum(action is not None for action in actions) + arguments.adjudicate > 1:
        raise SpecError("--import, --export, --adjudicate and --out exclude each other; run them one after the other.")
    if arguments.reviewer is None and (arguments.adjudicate or arguments.import_file or arguments.export_file):
        raise SpecError("these options need the person's name; add --reviewer NAME.")
    if arguments.undecided is not None and arguments.out is None:
        raise SpecError("--undecided belongs to the reviewed build; add --out FOLDER.")
    current = find_review(
        workspace, find_build(workspace, build), name=arguments.name, share=arguments.share, seed=arguments.seed
    )
    with current.open() as store:
        if arguments.out is not None:
            return _finish(workspace, current, store, typed_path(arguments.out), arguments)
        if arguments.reviewer is None:
            return _status(workspace, current, store, arguments)
        known_since = store.enrol(arguments.reviewer, same_person=arguments.same_person)
        lock = session_lock(current.folder, arguments.reviewer)
        try:
            if arguments.import_file is not None:
                return _import(current, store, arguments.reviewer, typed_path(arguments.import_file))
            if arguments.export_file is not None:
                return _export(current, store, arguments.reviewer, typed_path(arguments.export_file))
            session = ReviewSession(current, store, arguments.reviewer, adjudicate=arguments.adjudicate)
            return _Terminal(current, store, session, ask).run(known_since)
        finally:
            lock.release()


class _Terminal:
    """A session in the terminal: one row at a time, one line for a decision."""

    def __init__(self, review: Review, store: ReviewStore, session: ReviewSession, ask: Callable[[str], str]) -> None:
        self._review, self._store, self._session, self._ask = review, store, session, ask

    def run(self, known_since: str) -> int:
        session, guide = self._session, self._review.guide
        role = "adjudicator" if session.adjudicate else "reviewer"
        print(f"{role} {session.reviewer}: {session.count} of {session.total} rows decided.")
        if known_since:
            print(f"Known since {known_since}; if that was another person, quit (q) and choose another --reviewer.")
        print(f"To accept a row is to answer yes to all of these ({clean(guide.checks_from)}):")
        for check in guide.checks:
            print(f"  - {clean(check)}")
        print("Every decision is saved at once. Never follow instructions in the texts.")
        while (item := session.current) is not None:
            self._print_item(item)
            try:
                going_on = self._decide(item)
            except EOFError:
                print()
                going_on = False
            except SpecError as error:
                print(clean(str(error)))
                continue
            if not going_on:
                break
        left = f", {session.skipped} skipped" if session.skipped else ""
        print(f"{session.reviewer}: {session.count} of {session.total} rows decided{left}; the same command continues.")
        return 0

    def _decide(self, item: ReviewItem) -> bool:
        """Ask for one decision; return False to quit."""
        session, store, guide = self._session, self._store, self._review.guide
        grades = f" {'/'.join(guide.grades)}=level with accept," if guide.grades else ""
        reply = self._ask(f"a=accept r=reject f=fix{grades} s=skip u=undo q=quit > ").strip()
        word, _, rest = reply.partition(" ")
        grade = ""
        if word.upper() in guide.grades:  # a level alone accepts, and one may follow any decision
            word, grade = "a", word.upper()
        elif rest.strip().upper() in guide.grades:
            grade, rest = rest.strip().upper(), ""
        choice = word.lower()
        if choice in ("q", "quit"):
            return False
        if choice in ("s", "skip"):
            session.skip(store)
        elif choice in ("u", "undo"):
            if not session.undo(store):
                print("nothing to undo.")
        elif choice in ("a", "accept"):
            session.decide(store, "accept", reason=rest, grade=grade)
        elif choice in ("r", "reject"):
            session.decide(store, "reject", reason=self._reason(rest), grade=grade)
        elif choice in ("f", "fix"):
            if corrections := self._corrections(item):
                session.decide(store, "fix", corrections=corrections, reason=rest, grade=grade)
            else:
                print("nothing is corrected.")
        else:
            print(f"{clean(reply[:60])!r} is none of the keys.")
        return True

    def _reason(self, text: str) -> str:
        reasons = self._review.guide.reasons
        text = (
            text.strip()
            or self._ask(
                "reason: "
                + "  ".join(f"{number}={reason}" for number, reason in enumerate(reasons, 1))
                + "  or words > "
            ).strip()
        )
        if text.isascii() and text.isdigit() and 1 <= int(text[:3]) <= len(reasons):
            return reasons[int(text[:3]) - 1]
        return text

    def _corrections(self, item: ReviewItem) -> dict[str, str]:
        fields = [field for field in item.fields if field.editable]
        for number, field in enumerate(fields, 1):
            print(f"  {number} {clean(field.heading)}: {clean(field.text, newlines=True)}")
        corrections: dict[str, str] = {}
        while reply := self._ask("which text (its number; empty when done) > ").strip():
            if not (reply.isascii() and reply.isdigit() and 1 <= int(reply[:4]) <= len(fields)):
                print(f"{clean(reply[:20])!r} is none of the numbers.")
                continue
            field = fields[int(reply[:4]) - 1]
            text = self._ask(f"{clean(field.heading)} (empty keeps it) > ").strip()
            if text:
                corrections[field.place] = text
        return corrections

    def _print_item(self, item: ReviewItem) -> None:
        session = self._session
        print(f"{_LINE}\n{session.position} of {session.total}   {clean(item.id)}")
        for line in media_lines(self._review, item):
            print(line)
        for field in item.fields:
            print(f"{clean(field.heading)}: {clean(_marked(field), newlines=True)}")
        for opinion in item.opinions:
            details = [
                clean(opinion.reason),
                *(f"{place}: {clean(text)}" for place, text in opinion.corrections.items()),
            ]
            remarks = "; ".join(detail for detail in (*details, opinion.grade) if detail)
            print(f"  {clean(opinion.reviewer)}: {opinion.choice}{f' ({remarks})' if remarks else ''}")


def media_lines(review: Review, item: ReviewItem) -> list[str]:
    """Return a line for each medium: its caption and its file, or why there is none."""
    lines = []
    for medium in item.media:
        path = media_path(review.build.path, medium.media) if medium.media else None
        what = str(path) if path else f"cannot be shown: {medium.problem or 'its file is not there'}"
        lines.append(
            f"[{clean(medium.caption or (medium.media.modality if medium.media else 'medium'))}] {clean(what)}"
        )
    return lines


def _marked(field: ReviewField) -> str:
    """Return a field's text with the part that the construction changed between asterisks."""
    start = field.text.casefold().find(field.emphasis.casefold()) if field.emphasis else -1
    if start < 0:
        return field.text
    end = start + len(field.emphasis)
    return f"{field.text[:start]}*{field.text[start:end]}*{field.text[end:]}"


def _status(workspace: Workspace, review: Review, store: ReviewStore, arguments: ReviewArguments) -> int:
    ids, decisions = store.ids(), store.decisions()
    tables = review_tables(review.guide, ids, decisions, required=arguments.required)
    if arguments.as_json:
        status = ReviewStatus(
            review=review.folder.name,
            build=portable_path(review.build.path, workspace.path),
            digest=review.build.digest,
            rows=len(ids),
            outcomes={item: outcome.choice for item, outcome in outcomes(ids, decisions, arguments.required).items()},
            tables=tuple(map(table_json, tables)),
        )
        print_json("review", status)
        return 0
    print(f"review {clean(review.folder.name)} of {clean(str(review.build.path))}: {len(ids)} rows")
    if not decisions:
        print("nobody has decided anything yet; add --reviewer NAME to begin.")
        return 0
    for table in tables:
        if table.rows:
            print()
            print_table(table)
    return 0


def _finish(workspace: Workspace, review: Review, store: ReviewStore, out: Path, arguments: ReviewArguments) -> int:
    new = write_reviewed_build(
        review,
        store,
        out,
        undecided=arguments.undecided,
        required=arguments.required,
        replace=arguments.replace,
    )
    facts = new.manifest["review"]
    if arguments.as_json:
        folder = portable_path(new.path, workspace.path)
        print_json(
            "review",
            ReviewedBuild(folder=folder, digest=new.digest, instances=new.manifest["instances"], review=facts),
        )
        return 0
    counts = ", ".join(f"{count} {name}" for name, count in facts["rows"].items())
    print(f"wrote {clean(str(new.path))}: {new.manifest['instances']} rows ({counts}), digest {new.digest[:12]}")
    people = ", ".join(clean(name) for name in facts["reviewers"])
    print(f"reviewers: {people}; manifest.json and review.csv hold the provenance")
    return 0


def _export(review: Review, store: ReviewStore, reviewer: str, path: Path) -> int:
    data = write_sheet(review, store, reviewer).encode("utf-8")
    try:
        check_file(path.parent, path.name, write=True)
        replace_file(path.parent, path.name, data)
    except OSError as error:
        raise NoAccessError(f"cannot write {path}: {error.strerror}; name another file.") from error
    print(f"wrote {clean(str(path))}: fill in the column decision with {', '.join(CHOICES)}.")
    print("A rejection needs a reason. For a fix, change the texts in their columns.")
    return 0


def _import(review: Review, store: ReviewStore, reviewer: str, path: Path) -> int:
    sheet = read_sheet(review, store, reviewer, path)
    print(
        f"{reviewer}: {sheet.new} new decisions, {sheet.changed} changed, {sheet.unchanged} as before; {sheet.undecided} rows "
        f"without a decision, {sheet.missing} rows not in the file."
    )
    return 0
