"""Licences of the sources of builds, as far as their owners state them, and whether media may be passed on under them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Licence:
    """The terms of a source, a phrase for each part; ``media`` tells whether they let anyone pass its media on."""

    terms: tuple[str, ...]
    media: bool = False

    @property
    def text(self) -> str:
        return "; ".join(self.terms)


_COCO = "COCO's images: Flickr's, each under a licence of its own (COCO's metadata), for research"
OWN = Licence(("your own data, whose terms only you know",))
_UNKNOWN = Licence(("not known to Rashomon",))

LICENCES: Mapping[str, Mapping[str, Licence]] = {
    "cmc-bench": {
        "chartqa": Licence(("GPL-3.0 (its repository); charts of Statista, Pew, OWID and OECD",)),
        "mmmu": Licence(("Apache-2.0 (its repository); images of third parties",)),
        "rows": OWN,
    },
    "clash": {
        "published": Licence(
            (
                "CLASH's questions: not stated (its repository has no licence); its captions derive from COCO's, CC BY 4.0",
                _COCO,
            )
        ),
        "sugar-crepe": Licence(("SugarCrepe's captions: MIT (its repository)", _COCO)),
        "coco": Licence((_COCO,)),
        "spatial": Licence((_COCO,)),
        "rows": OWN,
    },
    "mmkc-bench": {"published": Licence(("not stated elsewhere",))},
    "crosscheck-bench": {"products": OWN, "products-figure-8": OWN, "rows": OWN},
    "contra4": {
        "published": Licence(("Contra4's questions: Apache-2.0 (its repository), for research", _COCO)),
    },
    "pope": {"pope": Licence(("POPE's questions: MIT (its repository)", _COCO))},
    "okvqa": {"okvqa": Licence(("OK-VQA's questions: not stated", _COCO))},
    "gqa": {
        "gqa": Licence(
            (
                "GQA's questions: MIT by the Hub's card, which may not be its authors'",
                "images of Visual Genome, CC BY 4.0",
            ),
            media=True,
        )
    },
    "chart-conflicts": {
        "published": Licence(
            (
                'the reports and annotations: CC BY 4.0 (the paper\'s artifact; "other" on the Hub)',
                "ChartQA's charts: GPL-3.0",
            )
        )
    },
    "mmmc": {
        "published": Licence(
            (
                "the questions: Apache-2.0 by the card of the Hub's copy, CC BY-SA 3.0 by another project's code",
                "images of Visual Genome, CC BY 4.0",
            )
        )
    },
    "phd": {"published": Licence(("PhD's questions and contexts: MIT (the card on the Hub)", _COCO))},
    "mc2": {"published": Licence(("the questions and texts: not stated (its repository has no licence)", _COCO))},
    "words-or-vision": {
        "published": Licence(("the texts and answers: MIT; VQAv2's questions: not stated there", _COCO))
    },
    "conflict-vis": {"published": Licence(("not stated (no licence on the Hub, nor in its repository)",))},
    "math-conflicts": {"published": Licence(("MIT (the set's card), as GSM8K and SVAMP, of which the problems are",))},
    "retrieval": {
        "log": OWN,
        "misleading-chartqa": Licence(
            ("not stated (its repository has no licence, and asks to cite its EMNLP 2025 paper)",)
        ),
    },
}
"""The licences by benchmark and source."""


def source_licences(manifest: Mapping[str, Any]) -> dict[str, Licence]:
    """Return the licence of each source that a build's manifest names; of all of its benchmark's if it names none."""
    known = LICENCES.get(str(manifest.get("benchmark")), {})
    named = manifest.get("sources")
    names = [str(name) for name in named] if isinstance(named, dict) and named else list(known)
    return {name: known.get(name, _UNKNOWN) for name in names} or {"its source": _UNKNOWN}
