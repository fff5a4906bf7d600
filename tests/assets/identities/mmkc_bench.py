"""MMKC-Bench: averages weighted by instances, EK as the mean of its sub-types, rates that sum to one."""

from __future__ import annotations

from collections.abc import Iterator

from tests.assets.identities.base import Claim, Identity, Results, count, mean

R = Results("mmkc-bench", half=0.005, digits=2)
MODELS = ("Qwen2.5-VL-7B", "InternVL3-8B", "GPT-4o mini")
SETTINGS = ("Context-Memory", "Inter-Context")
RATES = ("OAR", "CAR", "IAR")
FACTS = ("PT", "PL", "PC", "LT", "LC", "LO")
SUBTYPES = {2: 6, 3: 5}
"""The table of sub-types behind each table of rates."""
TYPES = {"ER": "Visual Entity Conflict", "EK": "Entity Knowledge Conflict", "VS": "Visual Semantic Conflict"}
WEIGHTS = {name: R(1, row, "Instances") for name, row in TYPES.items()}
PEOPLE, LOGOS = 149, 74
"""People and logos of EK; each has three facts, which makes its 669 instances."""


def heads() -> Iterator[str]:
    return (f"{model} / {setting}" for model in MODELS for setting in SETTINGS)


def rows() -> Iterator[str]:
    return (f"{head} / {rate}" for head in heads() for rate in RATES)


def weighted(values: dict[str, float]) -> float:
    return sum(WEIGHTS[name] * values[name] for name in WEIGHTS) / sum(WEIGHTS.values())


def of_facts(table: int, row: str) -> list[float]:
    return [R(SUBTYPES[table], row, fact) for fact in FACTS]


def weighted_by_people_and_logos() -> int:
    """Return the number of the 36 EK cells that weighting the sub-types by people and logos would reproduce."""
    return sum(
        R.check(t, row, "EK", (PEOPLE * sum(of[:3]) + LOGOS * sum(of[3:])) / (3 * (PEOPLE + LOGOS))).holds
        for t in (2, 3)
        for row in rows()
        for of in [of_facts(t, row)]
    )


def identities() -> list[Identity]:
    return [
        Identity(
            "Table 1",
            "the text's totals: 23 types, 1,573 instances, 3,381 images",
            [
                count(f"Table 1, {column}", printed, sum(R(1, row, column) for row in TYPES.values()))
                for column, printed in (("Types", 23), ("Instances", 1573), ("Images", 3381))
            ],
        ),
        Identity(
            "Table 1",
            "three images an instance (ER, VS); EK's 669 images would make 223 such",
            [
                count(
                    f"Table 1, {TYPES[name]}, Images", R(1, TYPES[name], "Images"), 3 * R(1, TYPES[name], "Instances")
                )
                for name in ("ER", "VS")
            ],
        ),
        Identity(
            "Tables 2, 3",
            "Avg. is weighted by 757, 669 and 147 instances",
            [
                R.check(t, row, "Avg.", weighted({name: R(t, row, name) for name in TYPES}))
                for t in (2, 3)
                for row in rows()
            ],
        ),
        Identity(
            "Tables 2, 3, 5, 6",
            "EK is the unweighted mean of its six sub-types (Table 6 for 2, Table 5 for 3)",
            [R.check(t, row, "EK", mean(of_facts(t, row))) for t in (2, 3) for row in rows()],
        ),
        Identity(
            "Tables 2, 3, 5, 6",
            "OAR + CAR + IAR = 1",
            [
                R.total(f"Table {t}, {head}, {column}", 1, sum(R(t, f"{head} / {rate}", column) for rate in RATES), 3)
                for t in (2, 3, 5, 6)
                for head in heads()
                for column in R.columns(t)
            ],
        ),
        Identity(
            "Table 4",
            "the average of a type is the mean with and without conflict",
            [
                R.check(4, m, f"{of} Avg.", mean([R(4, m, f"{of} {what}") for what in ("Non-Conflict", "Conflict")]))
                for m in MODELS
                for of in ("ER", "EK", "VS", "Fine EK")
            ],
        ),
        Identity(
            "Table 4",
            "the coarse average is weighted as in Tables 2 and 3",
            [R.check(4, m, "Coarse Avg.", weighted({n: R(4, m, f"{n} Avg.") for n in TYPES})) for m in MODELS],
        ),
    ]


def claims() -> list[Claim]:
    def average(table: int, setting: str, rate: str) -> list[float]:
        return [R(table, f"{model} / {setting} / {rate}", "Avg.") for model in MODELS]

    context, inter = SETTINGS
    own, counter = (average(2, context, r) + average(3, context, r) for r in ("OAR", "CAR"))
    more = [
        round(after - before, 2)
        for t in (2, 3)
        for after, before in zip(average(t, inter, "CAR"), average(t, context, "CAR"), strict=True)
    ]
    pairs = [(R(4, m, f"{n} Non-Conflict"), R(4, m, f"{n} Conflict")) for m in MODELS for n in TYPES]
    better = sum(without > with_one for without, with_one in pairs)
    places = [(t, f"{head} / OAR") for t in (2, 3) for head in heads()]
    below = {name: sum(R(t, row, "EK") < R(t, row, name) for t, row in places) for name in ("ER", "VS")}
    irrelevant = [
        opened > chosen
        for setting in SETTINGS
        for opened, chosen in zip(average(3, setting, "IAR"), average(2, setting, "IAR"), strict=True)
    ]
    qwen = "Qwen2.5-VL-7B / Context-Memory / OAR"
    return [
        Claim("average OAR exceeds CAR in 6 of 6", all(o > c for o, c in zip(own, counter, strict=True))),
        Claim("the largest increase of CAR is 21%", max(more) == 0.21),
        Claim("the smallest is about -2%", min(more) == -0.02),
        *(
            Claim(f"{model} detects {percent}% on average", R(4, model, "Coarse Avg.") == percent / 100)
            for model, percent in zip(MODELS, (79, 75, 76), strict=True)
        ),
        Claim("detection is better without a conflict in 5 of 9", better == 5),
        Claim("open questions have a higher IAR", all(irrelevant)),
        Claim(
            '"generally perform better in recognizing conflicts under conflict scenarios" (section 5.3, heading)',
            better < len(pairs) / 2,
            f"better without one in {better} of {len(pairs)}, as the paragraph below it says",
        ),
        Claim(
            '"entity recognition conflicts yield an OAR as low as 0.26 on Qwen2.5-VL-7B" (section 5.2)',
            R(3, qwen, "ER") == 0.26,
            f"0.26 is Table 3's EK; its ER is {R(3, qwen, 'ER'):.2f}",
        ),
        Claim(
            '"lower OARs on knowledge-related conflicts" than on recognition-based ones (section 5.2)',
            min(below.values()) == len(places),
            f"EK is below ER in {below['ER']} of {len(places)}, below VS in {below['VS']}",
        ),
    ]
