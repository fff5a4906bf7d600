"""CrossCheck-Bench: averages over 15 tasks, Table 2 beside Table 1, and what the text says of levels and capabilities."""

from __future__ import annotations

from tests.assets.identities.base import Check, Claim, Identity, Results, count, mean

R = Results("crosscheck-bench", half=0.0005, scale=100, digits=1)
MODELS = [row for row in R.rows(1) if row != "Human"]
CLOSED = MODELS[-4:]
TASKS = [column for column in R.columns(1) if column != "Avg."]
LEVELS = {"L1": TASKS[:6], "L2": TASKS[6:10], "L3": TASKS[10:]}
ALONE = {"A1": "PMP", "A2": "BR", "A3": "LD", "A4": "PD*", "A5": "SP", "A6": "PMO"}
"""The task that needs one capability and nothing else (Table 4)."""
SAME = {"GPT-4.1": "GPT-4.1-2025-04-14", "Qwen2.5-VL-72B": "Qwen2.5VL-72B"}
BASES = {"BR*": "BR", "SKU": "SPU", "PI": "BDC", "BI": "BDC", "BI*": "BDC"}
GPT, GEMINI, INTERN, QWEN = "GPT-4.1-2025-04-14", "Gemini-2.5-pro-p-06-05", "InternVL3-78B", "Qwen2.5VL-72B"


def level(model: str, name: str) -> float:
    return mean([R(1, model, task) for task in LEVELS[name]])


def identities() -> list[Identity]:
    accuracies = [column for column in R.columns(2) if not column.endswith("drop")]
    two = [row for row in R.rows(2) if row != "Overall-A"]
    overall: list[Check] = []
    for task in accuracies:
        overall.append(R.check(2, "Overall-A", task, mean([R(1, model, task) for model in MODELS])))
    drops = [
        R.check(2, row, f"{task} drop", R(2, row, base) - R(2, row, task), 2)
        for row in R.rows(2)
        for task, base in BASES.items()
    ]
    return [
        Identity("Table 1", "Avg. is the mean of the 15 tasks", [_average(model) for model in R.rows(1)]),
        Identity(
            "Tables 1, 2",
            "Table 2's accuracies are Table 1's",
            [R.check(2, row, task, R(1, SAME.get(row, row), task), 0) for row in two for task in accuracies],
        ),
        Identity("Table 2", "a drop is the atomic accuracy less the compositional one", drops),
        Identity("Tables 1, 2", "Overall-A is the mean of the 13 models", overall),
        Identity(
            "Figure 4",
            "the tasks' samples make 14,690",
            [count("Figure 4, All", R("Figure 4", "All", "Samples"), sum(R("Figure 4", t, "Samples") for t in TASKS))],
        ),
    ]


def _average(model: str) -> Check:
    return R.check(1, model, "Avg.", mean([R(1, model, task) for task in TASKS]))


def claims() -> list[Claim]:
    average = {model: R(1, model, "Avg.") for model in R.rows(1)}
    best = max(average[model] for model in MODELS)
    levels = {model: [level(model, name) for name in LEVELS] for model in R.rows(1)}

    def averages(model: str, first: str, last: str) -> str:
        return f"its L1 is {100 * level(model, first):.1f}, its L3 {100 * level(model, last):.1f}"

    def alone(capability: str, model: str) -> float:
        return R(1, model, ALONE[capability])

    human = mean([R(1, "Human", task) for task in TASKS])
    grown = {
        small: (level(large, "L1") - level(small, "L1"))
        for small, large in (("InternVL3-38B", INTERN), ("Qwen2.5VL-7B", QWEN))
    }
    open_models = MODELS[:-4]
    drops = [R(2, "Overall-A", f"{task} drop") for task in BASES]
    hard = [mean([alone(a, model) for a in ("A4", "A5", "A6")]) for model in CLOSED]
    return [
        Claim("human performance is 95.2%", average["Human"] == 0.952),
        Claim("GPT-4.1 and Gemini are above 76%", min(average[GPT], average[GEMINI]) > 0.76),
        Claim("the strongest open model reaches 71.5%", max(average[m] for m in open_models) == 0.715),
        Claim(
            "closed models lead the open ones", min(average[m] for m in CLOSED) > max(average[m] for m in open_models)
        ),
        Claim("GPT-4.1 exceeds 85% on A2", alone("A2", GPT) > 0.85),
        Claim(
            "CoT: +1.7 on A7",
            round(R(3, "CoT Prompting", "A7: Logic") - R(3, "Base (Vanilla)", "A7: Logic"), 3) == 0.017,
        ),
        Claim("CoT harms OCR", R(3, "CoT Prompting", "A6: OCR") < R(3, "Base (Vanilla)", "A6: OCR")),
        Claim("MM-CoT: +4.4", round(R(3, "MM-CoT", "A7: Logic") - R(3, "Base (Vanilla)", "A7: Logic"), 3) == 0.044),
        Claim("MM-CoT outperforms all other strategies", all(_best(column) == "MM-CoT" for column in R.columns(3))),
        Claim("Ovis2-8B drops to 36.6% on A5", alone("A5", "Ovis2-8B") == 0.366),
        Claim(
            'humans surpass "the best proprietary model by over 18 points"',
            human - best > 0.18,
            f"{100 * (average['Human'] - best):.1f} by the printed average, {100 * (human - best):.1f} by that of the cells",
        ),
        Claim(
            '"Even on reasoning tasks, human performance remains above 88%"',
            min(R(1, "Human", task) for task in LEVELS["L3"]) >= 0.88,
            f"BC is {100 * R(1, 'Human', 'BC'):.1f}, BC* {100 * R(1, 'Human', 'BC*'):.1f}; "
            f"the mean of L3 is {100 * level('Human', 'L3'):.1f}",
        ),
        Claim(
            '"accuracy consistently declines" from L1 over L2 to L3',
            all(a > b > c for a, b, c in levels.values()),
            f"L2 is above L1 for {sum(b > a for a, b, _ in levels.values())} of {len(levels)} rows, L3 below L1 for "
            f"{sum(c < a for a, _, c in levels.values())}",
        ),
        Claim(
            '"GPT-4.1 dropping from 85.3% on L1 tasks to 75.7% on L3"',
            round(level(GPT, "L1"), 3) == 0.853,
            f"{averages(GPT, 'L1', 'L3')}; 85.3 is its PMO, 75.7 its PI",
        ),
        Claim(
            '"InternVL3-78B falls from 71.5% at L1 to 64.0% at L3"',
            round(level(INTERN, "L1"), 3) == 0.715,
            f"{averages(INTERN, 'L1', 'L3')}; 71.5 is its average, 64.0 its BI*",
        ),
        Claim(
            '"Qwen2.5-VL-72B drops from 69.9% to 63.9%"',
            round(level(QWEN, "L1"), 3) == 0.699,
            f"{averages(QWEN, 'L1', 'L3')}; 69.9 is its printed average",
        ),
        Claim(
            '"For L1 tasks ... InternVL improves by 3.5 points from 38B to 78B"',
            round(grown["InternVL3-38B"], 3) == 0.035,
            f"{100 * grown['InternVL3-38B']:.1f}; 3.5 is the gain of its average",
        ),
        Claim(
            '"and Qwen2.5-VL improves by nearly 9 points from 7B to 72B"',
            0.085 <= grown["Qwen2.5VL-7B"] <= 0.09,
            f"{100 * grown['Qwen2.5VL-7B']:.1f}; 8.9 is the gain of its printed average",
        ),
        Claim(
            '"accuracy drops by 12%-35%" where numbers, frames or rules come in',
            all(0.12 <= drop <= 0.35 for drop in drops),
            f"Overall-A's drops are {', '.join(f'{100 * drop:.1f}' for drop in drops)}",
        ),
        Claim(
            'where all capabilities are required, "top models often fail to exceed 50%" and smaller ones are "below 40%"',
            min(R(1, model, "BI*") for model in MODELS) < 0.4,
            f"the lowest BI* is {100 * min(R(1, model, 'BI*') for model in MODELS):.1f}; GPT-4.1's is "
            f"{100 * R(1, GPT, 'BI*'):.1f}, Gemini's {100 * R(1, GEMINI, 'BI*'):.1f}",
        ),
        Claim(
            '"GPT-4.1 exceeds 85% on A2 and A3"',
            alone("A3", GPT) > 0.85,
            f"on LD, the task of A3 alone, it has {100 * alone('A3', GPT):.1f}",
        ),
        Claim(
            '"Even top-tier models score below 75% on average across" A4 to A6',
            max(hard) < 0.75,
            f"GPT-4.1 has {100 * mean([alone(a, GPT) for a in ('A4', 'A5', 'A6')]):.1f} on PD*, SP and PMO",
        ),
        Claim(
            '"most open models perform below 55% on A6"',
            sum(alone("A6", model) < 0.55 for model in open_models) > len(open_models) / 2,
            f"on PMO {sum(alone('A6', m) < 0.55 for m in open_models)} of {len(open_models)} do; on SP, the task of A5, "
            f"{sum(alone('A5', m) < 0.55 for m in open_models)}",
        ),
        Claim(
            '"InternVL3-38B outperforms GPT-4.1 on A3"',
            alone("A3", "InternVL3-38B") > alone("A3", GPT),
            f"on LD {100 * alone('A3', 'InternVL3-38B'):.1f} and {100 * alone('A3', GPT):.1f}",
        ),
        Claim(
            '"Qwen2.5-VL-72B achieves the best A6 result overall"',
            max(MODELS, key=lambda model: alone("A6", model)) == QWEN,
            f"on PMO, the task of A6 alone, GPT-4.1 has {100 * alone('A6', GPT):.1f} and it {100 * alone('A6', QWEN):.1f}",
        ),
    ]


def _best(column: str) -> str:
    return max(R.rows(3), key=lambda row: R(3, row, column))
