"""CMC-Bench: equations 2, 4 and 5 on Table 3's rows, the counts of section 5.3, and what they leave of MPB (equation 3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tests.assets.identities.base import Claim, Identity, Results, count, mean

R = Results("cmc-bench", half=0.0005)
QWEN, LFM, GEMMA, DEEPSEEK = MODELS = R.rows(3)
CONFLICT = ("Img-Cor", "Txt-Cor", "Both-Wr")
KINDS = ("Factual (ChartQA)", "Temporal (ChartQA)", "Entity (MMMU)", "Granularity (MMMU)")
RQ4 = "Section 5.2, RQ4"
N = 942


def accuracy(model: str) -> float:
    """The mean of the accuracies under conflict."""
    return mean([R(3, model, condition) for condition in CONFLICT])


def label(model: str, name: str) -> int:
    return int(R("Section 5.3", f"{model} / image-correct", name))


def identities() -> list[Identity]:
    examples = {row: R(1, row, "Examples") for row in R.rows(1) if R.has(1, row, "Examples")}
    detected = mean([R(RQ4, row, "ABSTAIN") for row in R.rows(RQ4)])
    return [
        Identity(
            "Table 1",
            "examples are the sum over conflict types, in all and of each source",
            [
                count("Table 1, Total", examples["Total"], sum(examples[kind] for kind in KINDS)),
                count("Table 1, ChartQA", examples["Source: ChartQA"], sum(examples[kind] for kind in KINDS[:2])),
                count("Table 1, MMMU", examples["Source: MMMU"], sum(examples[kind] for kind in KINDS[2:])),
            ],
        ),
        Identity(
            "Table 1",
            "instances are four times the examples",
            [count(f"Table 1, {row}", R(1, row, "Instances"), 4 * examples[row]) for row in ("Total", *KINDS)],
        ),
        Identity(
            "Table 3",
            "MFR is the mean of the accuracies under conflict (equation 2)",
            [R.check(3, m, "MFR", accuracy(m)) for m in MODELS],
        ),
        Identity(
            "Table 3",
            "HR = ConfabR + CDR (equations 4, 6, 7)",
            [R.check(3, m, "HR", R(3, m, "ConfabR") + R(3, m, "CDR"), 2) for m in MODELS],
        ),
        Identity(
            "Table 3",
            "ΔAcc is Aligned less the mean of the accuracies under conflict (equation 5)",
            [R.check(3, m, "ΔAcc", R(3, m, "Aligned") - accuracy(m), 2) for m in MODELS],
        ),
        Identity(
            "Table 3",
            "MPB Txt = 1 - MPB Img (equation 3)",
            [R.check(3, m, "MPB Txt", 1 - R(3, m, "MPB Img")) for m in MODELS],
        ),
        Identity(
            "Section 5.3, Table 3",
            "(IMAGE + BOTH) / 942 under image-correct is Img-Cor",
            [R.check(3, m, "Img-Cor", (label(m, "IMAGE") + label(m, "BOTH")) / N, 0) for m in (QWEN, LFM)],
        ),
        Identity(
            "Section 5.2, Table 3",
            "Qwen3's CDR is the mean of its three by condition",
            [R.check(3, QWEN, "CDR", detected)],
        ),
        Identity(
            "Section 5.3, Table 3",
            "MPB Img is at most what the counts allow if text-correct has no more labels BOTH than image-correct",
            [R.check(3, b.model, "MPB Img", min(b.most(b.both), R(3, b.model, "MPB Img")), 0) for b in bounds()],
        ),
    ]


@dataclass(frozen=True)
class Bound:
    """The largest MPB Img that a model's other printed figures leave, over all counts that round to them."""

    model: str

    @property
    def both(self) -> int:
        """BOTH under image-correct; where section 5.3 does not tell it, the most that Img-Cor leaves."""
        row = f"{self.model} / image-correct"
        if R.has("Section 5.3", row, "BOTH"):
            return label(self.model, "BOTH")
        return max(_rounding_to(R(3, self.model, "Img-Cor"), N)) - label(self.model, "IMAGE")

    @property
    def accurate(self) -> int:
        """Accurate answers under text-correct: TEXT or BOTH."""
        return round(N * R(3, self.model, "Txt-Cor"))

    def most(self, both: int) -> float:
        """With ``both`` labels BOTH under text-correct.

        image-correct: IMAGE and TEXT are told, so NEITHER and ABSTAIN are the rest. both-wrong: all that are neither of these
        are IMAGE. text-correct: HR tells how many are NEITHER or ABSTAIN, Txt-Cor how many are TEXT or BOTH; the rest is IMAGE.
        """
        image, text = label(self.model, "IMAGE"), label(self.model, "TEXT")
        first = N - image - text - self.both
        bounds = []
        for neither, hallucinated, right in product(
            _rounding_to(R(3, self.model, "Both-Wr"), N),
            _rounding_to(R(3, self.model, "HR"), 3 * N),
            _rounding_to(R(3, self.model, "Txt-Cor"), N),
        ):
            rest = N - (hallucinated - first - neither) - right
            if rest >= 0 and right >= both:
                images = image + rest + (N - neither)
                bounds.append(images / (images + text + right - both))
        return max(bounds)

    def needed(self) -> int:
        """Return the fewest BOTH labels under text-correct that the printed MPB Img requires."""
        printed = R(3, self.model, "MPB Img") - R.half
        return next(both for both in range(self.accurate + 1) if self.most(both) >= printed)


def _rounding_to(share: float, n: int) -> list[int]:
    near = round(share * n)
    return [c for c in range(near - 3, near + 4) if abs(c / n - share) <= R.half + 1e-9]


def bounds() -> list[Bound]:
    """Return the bounds of the models whose IMAGE and TEXT counts are in section 5.3."""
    return [Bound(model) for model in (QWEN, LFM, DEEPSEEK)]


def bounds_table() -> str:
    """Return the bounds on MPB as a Markdown table."""
    lines = [
        "| model | MPB Img printed | at most, without BOTH in text-correct | with as many as in image-correct | BOTH needed "
        "in text-correct | of accurate answers |",
        "|---|---|---|---|---|---|",
    ]
    for b in bounds():
        printed = R(3, b.model, "MPB Img")
        lines.append(
            f"| {b.model} | {printed:.3f} | {b.most(0):.3f} | {b.most(b.both):.3f} ({b.both}) | {b.needed()} | {b.accurate} |"
        )
    return "\n".join(lines) + "\n"


def claims() -> list[Claim]:
    def column(name: str) -> dict[str, float]:
        return {model: R(3, model, name) for model in MODELS}

    def largest(name: str) -> list[str]:
        values = column(name)
        return sorted(values, key=lambda model: -values[model])

    def gap(model: str) -> float:
        return round(abs(R(3, model, "Txt-Cor") - R(3, model, "Img-Cor")), 3)

    mfr, drop, wrong = column("MFR"), column("ΔAcc"), column("Both-Wr")
    return [
        Claim(
            "ΔAcc between 0.17 and 0.46", (round(min(drop.values()), 2), round(max(drop.values()), 2)) == (0.17, 0.46)
        ),
        Claim("Qwen3 abstains on 31.7% of conflicts", R(3, QWEN, "CDR") == 0.317),
        Claim("Gemma fabricates in 51.9% of conflicts", R(3, GEMMA, "ConfabR") == 0.519),
        Claim("LFM2.5: highest aligned accuracy, largest drop", largest("Aligned")[0] == largest("ΔAcc")[0] == LFM),
        Claim("both-wrong accuracy 0.277 to 0.822", (min(wrong.values()), max(wrong.values())) == (0.277, 0.822)),
        Claim("MFR between 0.430 and 0.486", (min(mfr.values()), max(mfr.values())) == (0.43, 0.486)),
        Claim("a spread of 5.6 points", round(max(mfr.values()) - min(mfr.values()), 3) == 0.056),
        Claim("LFM2.5 prefers text (MPB-txt 0.533)", R(3, LFM, "MPB Txt") == 0.533),
        Claim("DeepSeek prefers the image (MPB-img 0.521)", R(3, DEEPSEEK, "MPB Img") == 0.521),
        Claim("Qwen3 and Gemma prefer the image", min(R(3, QWEN, "MPB Img"), R(3, GEMMA, "MPB Img")) == 0.549),
        *(
            Claim(f"{model}: a gap of {by} between the two accuracies", gap(model) == by)
            for model, by in ((LFM, 0.635), (DEEPSEEK, 0.509), (QWEN, 0.034), (GEMMA, 0.082))
        ),
        Claim("LFM2.5: lowest HR and lowest CDR", largest("HR")[-1] == largest("CDR")[-1] == LFM),
        Claim("Gemma: highest ConfabR", largest("ConfabR")[0] == GEMMA),
        Claim("Qwen3: highest CDR", largest("CDR")[0] == QWEN),
        Claim("Qwen3: second-worst HR", largest("HR")[1] == QWEN),
        Claim("the smallest ΔAcc goes with the highest ConfabR", largest("ΔAcc")[-1] == largest("ConfabR")[0]),
        Claim(
            '"Qwen3-VL-4B posts the second-largest ΔAcc (0.412)" (section 6)',
            largest("ΔAcc")[1] == QWEN,
            f"DeepSeek-VL2-small's is {drop[DEEPSEEK]:.3f}: Qwen3's is the third",
        ),
        Claim(
            'its image- and text-correct accuracies are "the lowest in their respective categories" (section 6)',
            largest("Img-Cor")[-1] == largest("Txt-Cor")[-1] == QWEN,
            f"its Img-Cor {R(3, QWEN, 'Img-Cor'):.3f} is the highest; the lowest Txt-Cor is Gemma's, "
            f"{R(3, GEMMA, 'Txt-Cor'):.3f}",
        ),
    ]
