"""Contra4: counts that add up, inspected shares of 120 samples, and Table 2's means over the published test split."""

from __future__ import annotations

from collections.abc import Sequence

from tests.assets.identities.base import Check, Claim, Identity, Results, count, mean

R = Results("contra4", half=0.0005, scale=100, digits=1)
"""Tables 1, 5 and 7: percent with one decimal."""
Z = Results("contra4", half=0.005, digits=2)
"""Table 2: shares with two decimals."""
THOUSAND = 500
"""Counts are printed in thousands, so each is within 500."""

FILTERS = ("None", "MF", "UF", "PMF", "PUF")
SUBSETS = ("2 Modalities", "3 Modalities", "4 Modalities")
KINDS = ("Rand.", "Sim.", "All")
PANELS = ("Correctness", "Over-Applies", "None-Applies")
SHARES = {"Human Acc.": "Correctness", "O/A": "Over-Applies", "N/A": "None-Applies"}

SPLIT = {("2 Modalities", "Rand."): 415, ("2 Modalities", "Sim."): 396, ("3 Modalities", "Rand."): 416}
SPLIT |= {("3 Modalities", "Sim."): 385, ("4 Modalities", "Rand."): 357, ("4 Modalities", "Sim."): 366}
"""Samples of the published test split by number of modalities and negative sampling."""
WITHOUT_3D = {("2 Modalities", "Rand."): 175, ("2 Modalities", "Sim."): 152, ("3 Modalities", "Rand."): 10}
WITHOUT_3D |= {("3 Modalities", "Sim."): 21, ("4 Modalities", "Rand."): 0, ("4 Modalities", "Sim."): 0}
"""The ones without a point cloud, which are what Gemini-2.0 was asked."""


def samples(model: str) -> dict[tuple[str, str], int]:
    return WITHOUT_3D if model == "Gemini-2.0" else SPLIT


def weighted(model: str, values: Sequence[tuple[float, int]]) -> float:
    return sum(value * n for value, n in values) / sum(n for _, n in values)


def all_of_a_subset() -> list[Check]:
    """All is the mean of Rand. and Sim. by their samples, in each of Table 2's groups of columns that has it."""
    checks = []
    for model in Z.rows(2):
        n = samples(model)
        for group in (*SUBSETS, "All"):
            if not Z.has(2, model, f"{group} / All"):
                continue
            of = SUBSETS if group == "All" else (group,)
            both = [(Z(2, model, f"{group} / {kind}"), sum(n[g, kind] for g in of)) for kind in KINDS[:2]]
            checks.append(Z.check(2, model, f"{group} / All", weighted(model, both)))
    return checks


def gemini() -> list[Check]:
    """Gemini's pooled columns rest on two and three modalities alone: all samples of four have a point cloud."""
    n = WITHOUT_3D
    return [
        Z.check(
            2,
            "Gemini-2.0",
            f"All / {kind}",
            weighted("Gemini-2.0", [(Z(2, "Gemini-2.0", f"{g} / {kind}"), n[g, kind]) for g in SUBSETS[:2]]),
        )
        for kind in KINDS[:2]
    ]


def all_of_a_kind() -> list[Check]:
    """All / Rand. and All / Sim. are means over the numbers of modalities, of which the project page has the fours."""
    return [
        Z.check(
            2,
            model,
            f"All / {kind}",
            weighted(model, [(Z(2, model, f"{g} / {kind}"), SPLIT[g, kind]) for g in SUBSETS]),
        )
        for model in Z.rows(2)
        if Z.has(2, model, f"{SUBSETS[2]} / Rand.")
        for kind in KINDS[:2]
    ]


def crema() -> list[Check]:
    """Check the abstract's accuracies of the best model against CREMA's legible columns."""
    n = {kind: sum(SPLIT[g, kind] for g in SUBSETS) for kind in KINDS[:2]}
    right = {kind: Z(2, "CREMA", f"All / {kind}") * n[kind] for kind in n}
    four = sum(SPLIT["4 Modalities", kind] for kind in n)
    fewer = sum(Z(2, "CREMA", f"{g} / {kind}") * SPLIT[g, kind] for g in SUBSETS[:2] for kind in n)
    known = sum(SPLIT[g, kind] for g in SUBSETS[:2] for kind in n)
    total = sum(n.values())
    where = "abstract, best model"
    return [
        Check(f"{where}, all", Z("Abstract", "best model", "All"), sum(right.values()) / total, 0.01, 0.005, 100, 0),
        Check(
            f"{where}, 4 modalities",
            Z("Abstract", "best model", "4 Modalities"),
            (sum(right.values()) - fewer) / four,
            0.005 * (1 + (total + known) / four),
            0.005,
            100,
            0,
        ),
    ]


def sums_of_thousands() -> list[Check]:
    checks = []
    for f in FILTERS:
        for table, groups in ((1, ("Generated",)), (5, (*SUBSETS, "Aggregated"))):
            for group in groups:
                rand, sim, total = (
                    R(table, f, f"{group} / {kind if table == 5 else kind.rstrip('.')}") for kind in KINDS
                )
                checks.append(count(f"Table {table}, {f}, {group} / All", total, rand + sim, 3 * THOUSAND))
        for kind in KINDS:
            parts = sum(R(5, f, f"{group} / {kind}") for group in SUBSETS)
            total = R(5, f, f"Aggregated / {kind}")
            checks.append(count(f"Table 5, {f}, Aggregated / {kind}", total, parts, 4 * THOUSAND))
    return checks


def inspected(panel: str, name: str, group: str, kind: str) -> float:
    return R(7, f"{panel} / {name}", f"{group} / {kind}")


def shares_of_twenty() -> list[Check]:
    """Each share of Table 7 is a whole number of 20 samples, or of 40, 60 or 120 where subsets are pooled."""
    checks = []
    for row in R.rows(7):
        for group in (*SUBSETS, "Aggregated"):
            for kind in KINDS:
                of = 20 * (3 if group == "Aggregated" else 1) * (2 if kind == "All" else 1)
                column = f"{group} / {kind}"
                checks.append(R.check(7, row, column, round(R(7, row, column) * of) / of, 0))
    return checks


def pooled_shares() -> list[Check]:
    checks = []
    for row in R.rows(7):
        for group in (*SUBSETS, "Aggregated"):
            two = mean([R(7, row, f"{group} / {kind}") for kind in KINDS[:2]])
            checks.append(R.check(7, row, f"{group} / All", two))
        for kind in KINDS:
            three = mean([R(7, row, f"{group} / {kind}") for group in SUBSETS])
            checks.append(R.check(7, row, f"Aggregated / {kind}", three))
    return checks


def identities() -> list[Identity]:
    three = [
        Check(
            f"Table 7, {name.replace('WF', 'None')}, {g} / {k}, the three shares (at most 100)",
            min(1.0, total := sum(inspected(panel, name, g, k) for panel in PANELS)),
            total,
            0.0,
            0.0,
            100,
            1,
        )
        for name in ("WF", *FILTERS[1:])
        for g in SUBSETS
        for k in KINDS[:2]
    ]
    return [
        Identity(
            "Tables 1, 5",
            "counts: Rand + Sim = All, and the three numbers of modalities make Aggregated",
            sums_of_thousands(),
        ),
        Identity(
            "Tables 1, 5",
            "Table 5's aggregated counts are Table 1's",
            [
                count(f"Table 5, {f}, {k}", R(5, f, f"Aggregated / {k}"), R(1, f, f"Generated / {k.rstrip('.')}"))
                for f in FILTERS
                for k in KINDS
            ],
        ),
        Identity("Table 7", "shares are whole numbers of 20, 40, 60 or 120 samples", shares_of_twenty()),
        Identity("Table 7", "All is the mean of Rand. and Sim., Aggregated that of the three subsets", pooled_shares()),
        Identity("Table 7", "what is correct, applies to several or to none is no more than all", three),
        Identity(
            "Tables 1, 7",
            "Table 1's shares are Table 7's over all (None is WF there)",
            [
                R.check(1, f, column, inspected(panel, "WF" if f == "None" else f, "Aggregated", "All"), 0)
                for f in FILTERS
                for column, panel in SHARES.items()
            ],
        ),
        Identity(
            "Tables 1, 5",
            "Table 5's shares are Table 1's",
            [R.check(5, f, column, R(1, f, column), 0) for f in FILTERS for column in SHARES],
        ),
        Identity("Table 2", "All is the mean of Rand. and Sim., by the samples of the test split", all_of_a_subset()),
        Identity(
            "Table 2", "Gemini-2.0's All / Rand. and Sim. are its means over 2 and 3 modalities without 3D", gemini()
        ),
        Identity(
            "Table 2", "All / Rand. and Sim. are the means over the numbers of modalities, by samples", all_of_a_kind()
        ),
        Identity("Abstract, Table 2", "the best model's accuracies follow from CREMA's columns", crema()),
        Identity(
            "Abstract, section 6",
            "the relative improvement is 50 / 32 - 1",
            [
                Check(
                    "Abstract, relative improvement",
                    R("Abstract", "OneLLM / fine-tuned", "Relative improvement"),
                    R("Section 6", "OneLLM / fine-tuned", "All") / R("Section 6", "OneLLM / zero-shot", "All") - 1,
                    0.04,
                    0.005,
                    100,
                    0,
                )
            ],
        ),
    ]


def claims() -> list[Claim]:
    def gain(permuted: str, without: str) -> float:
        return round(R(1, permuted, "Human Acc.") - R(1, without, "Human Acc."), 4)

    three = {model: Z(2, model, "3 Modalities / All") for model in Z.rows(2)}
    overall = {model: Z(2, model, "All / Rand.") + Z(2, model, "All / Sim.") for model in Z.rows(2)}
    every = [
        d
        for d in R.rows(3)
        if all(R.cells["Table 3", d, m]["value"] == "yes" for m in ("Image", "Audio", "Video", "3D"))
    ]
    zero_shot = Z("Section 6", "OneLLM / zero-shot", "All")
    return [
        Claim("83.3% perceived correctness", R(1, "PUF", "Human Acc.") == 0.833),
        Claim("174k samples for training", R(1, "PUF", "Generated / All") == R("Section 4", "Train", "Samples")),
        Claim("permutation takes three times the GPU hours", R(1, "PUF", "GPU (hrs)") == 3 * R(1, "UF", "GPU (hrs)")),
        Claim("PUF converges with the least data: it has the fewest samples", min(FILTERS, key=_generated) == "PUF"),
        Claim("the top performer is CREMA", max(overall, key=overall.__getitem__) == "CREMA"),
        Claim("Gemini achieves the lowest score", min(overall, key=overall.__getitem__) == "Gemini-2.0"),
        Claim(
            "the caption baseline outperforms most as modalities increase: second of 3 modalities",
            sorted(three, key=three.__getitem__)[-2] == "Caption Baseline",
        ),
        Claim("DisCRn is the only other data set with all four modalities", every == ["DisCRn", "Contra4"]),
        Claim("Contra4 is the only one with four in a sample", [d for d in R.rows(3) if _most(d) > 2] == ["Contra4"]),
        Claim(
            'permutation improves precision "by over 20 points" (section 6)',
            min(gain("PMF", "MF"), gain("PUF", "UF")) > 0.2,
            f"{100 * gain('PUF', 'UF'):.1f} from UF to PUF, {100 * gain('PMF', 'MF'):.1f} from MF to PMF",
        ),
        Claim(
            'fine-tuning takes OneLLM "from 32% to 50%" (section 6)',
            Z(2, "OneLLM", "All / All") == zero_shot,
            f"Table 2 has {Z(2, 'OneLLM', 'All / All'):.2f}, in a column whose last digits are not sure",
        ),
    ]


def _generated(name: str) -> float:
    return R(1, name, "Generated / All")


def _most(dataset: str) -> float:
    return R(3, dataset, "Max Modalities per Sample")
