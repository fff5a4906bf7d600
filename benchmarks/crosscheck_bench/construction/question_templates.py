"""The templates by task, and the catalogue of those that the paper determines.

The paper has "45+ rule-based templates" for L1 and prints one wording for each task (Figure 8), three further examples
(Appendix C) and two perturbations (Appendix E). A template is here a wording with one perturbation; the catalogue lists
all that can be derived from these places. The others are not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from benchmarks.crosscheck_bench.construction import (
    appendix_templates,
    integration_templates,
    perception_templates,
    product_templates,
    shared_options,
)
from benchmarks.crosscheck_bench.construction.question_drafts import FIGURE_8, QuestionDraft, interleave
from benchmarks.crosscheck_bench.construction.template_data import Template, TemplateData
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS, Level

PRINTED_COUNT = "45+"
"""The number of templates of L1 in the paper (section "Question Generation")."""


def _in_turn(*templates: Template) -> Template:
    def drafts(data: TemplateData, random: Random) -> list[QuestionDraft]:
        return interleave(*[template(data, random) for template in templates])

    return drafts


L1_TEMPLATES: Mapping[str, Template] = {
    "LD": perception_templates.crossed_logos,
    "BR": perception_templates.brand_recognition,
    "PMP": perception_templates.main_part,
    "PMO": shared_options.printed_words,
    "PD*": _in_turn(product_templates.product_diff, appendix_templates.crossed_titles),
    "SP": shared_options.shared_prices,
}
"""The templates of L1, by task, in Table 1's order."""

L2_TEMPLATES: Mapping[str, Template] = {
    "BR*": integration_templates.content_brand,
    "SPU": integration_templates.same_style,
    "SKU": integration_templates.same_sku_by_pictures,
    "BDC": integration_templates.crossed_brands,
}
"""The templates of L2, by task, in Table 1's order."""

FIGURE_8_TEMPLATES: Mapping[str, Template] = {
    "LD": perception_templates.logo_diff,
    "PMO": perception_templates.main_part_ocr,
    "PD*": _in_turn(product_templates.product_diff, appendix_templates.title_consistency),
    "SP": _in_turn(product_templates.style_price, appendix_templates.swapped_prices),
    "SKU": integration_templates.same_sku,
    "BDC": integration_templates.brand_category,
}
"""The templates that ``products-figure-8`` has instead: rules that do not look are right more often than by chance."""


@dataclass(frozen=True, slots=True)
class PrintedTemplate:
    """A wording that the paper prints, with one perturbation ("" for none); ``wording`` is the place that prints it."""

    task: str
    wording: str
    perturbation: str = ""

    @property
    def level(self) -> Level:
        return TASKS[self.task].level


_BY_WORDING: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("LD", FIGURE_8): ("", perception_templates.LOOK_ALIKE, "another brand's logo"),
    ("BR", FIGURE_8): ("", "brand taken out of the title", "another brand put into the title"),
    ("PMP", FIGURE_8): ("", "title of another product", "logo in place of the product"),
    ("PMO", FIGURE_8): ("", appendix_templates.OTHER_TITLE),
    ("PMO", perception_templates.BRAND_TEXT_EXAMPLE): ("",),
    ("PMO", perception_templates.BOXED_EXAMPLE): ("",),
    ("PD*", FIGURE_8): ("", "another product of the category", "another product"),
    ("PD*", appendix_templates.TITLE_EXAMPLE): (
        "",
        appendix_templates.OTHER_TITLE,
        appendix_templates.MISMATCHED_BRAND,
    ),
    ("SP", FIGURE_8): ("", appendix_templates.SWAPPED_PRICE),
    ("BR*", FIGURE_8): ("", "another brand in the background"),
    ("SPU", FIGURE_8): ("",),
    ("SPU", integration_templates.SPU_EXAMPLE): ("", "another product"),
    ("SKU", FIGURE_8): ("", "another SKU of the style", "deciding attribute withheld"),
    ("BDC", FIGURE_8): ("", "another brand's product", "another brand of the category"),
}

CATALOGUE = tuple(
    PrintedTemplate(task, wording, perturbation)
    for (task, wording), perturbations in _BY_WORDING.items()
    for perturbation in perturbations
)
"""The templates of L1 and L2 that the paper determines, in Table 1's order of tasks."""


def template_of(draft: QuestionDraft) -> PrintedTemplate:
    """Return the template of a draft of L1 or L2."""
    return PrintedTemplate(draft.task, draft.wording, draft.conflict)
