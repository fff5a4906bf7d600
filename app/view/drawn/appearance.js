// Glyphs and words of states, outcomes and labels, those of app/tui/theme.py. Nothing is told apart by colour alone.

import { LACKING } from "./columns.js";
import { element } from "./dom.js";

const STATE_GLYPHS = { planned: "○", queued: "◌", loading: "◐", running: "●", judging: "◑", paused: "‖", interrupted: "¦", partial: "◒", stopped: "■", done: "✓", failed: "✗", unreadable: "?" };
const OUTCOME_GLYPHS = { right: "✓", wrong: "✗", unparsed: "∅", undecided: "?", "judge-failed": "‽", error: "!", pending: "·" };
const OUTCOME_KINDS = { right: "right", wrong: "wrong", unparsed: "invalid", undecided: "abstained", "judge-failed": "abstained", error: "partial", pending: "unjudged" };
const KIND_GLYPHS = { partial: "◐", abstained: "⊘", invalid: "∅" };

/** Return the glyph of a run's state. */
export function stateGlyph(state) {
  return Object.hasOwn(STATE_GLYPHS, state) ? STATE_GLYPHS[state] : "?";
}

/** Return the mark of a run that is a rule. */
export function policyMark() {
  return element("span", { class: "mark", title: "A rule that answers without looking; its scores are no reading." }, "rule, no model");
}

/** Return an outcome in words. */
export function outcomeWord(outcome) {
  return outcome.replace("-", " ");
}

/** Return the glyph, the word and the kind, which is a class of the style sheet, of an answer with this outcome and label. */
export function answerAppearance(head, condition, outcome, label) {
  const kind = outcome === "wrong" ? head.kinds[condition]?.[label] : undefined;
  const glyph = Object.hasOwn(KIND_GLYPHS, kind ?? "") ? KIND_GLYPHS[kind] : OUTCOME_GLYPHS[outcome];
  return { glyph, word: label ?? outcomeWord(outcome), kind: kind in KIND_GLYPHS ? kind : OUTCOME_KINDS[outcome], outcome, meaning: head.meanings[label] };
}

/** Return the appearance of the answer of a run to an instance by the index, null where the run lacks it. */
export function indexedAppearance(page, number, place) {
  const { head, index } = page;
  const { outcome, label } = index.runs[place];
  if (outcome[number] === LACKING) return null;
  const name = label[number] === LACKING ? null : head.labels[label[number]];
  return answerAppearance(head, head.conditions[index.condition[number]], head.outcomes[outcome[number]], name);
}

/** Return an appearance in words. */
export function spokenAppearance(appearance) {
  if (appearance === null) return "no answer";
  const { word, outcome } = appearance;
  return word === outcomeWord(outcome) ? word : `${word}, ${outcomeWord(outcome)}`;
}

/** Return what an appearance means, and who gave the label: `judge` is the id, empty where that is not known. */
export function explainAppearance(appearance, judge, overridden = false) {
  const { word, outcome, meaning } = appearance;
  const labeller = !judge || !["right", "wrong"].includes(outcome) ? null : overridden ? "by a person" : `by the judge ${judge}`;
  return [meaning ? `${word}: ${meaning}` : word, word !== outcomeWord(outcome) && outcomeWord(outcome), labeller].filter(Boolean).join("; ");
}

/** Return an element with the glyph and the word of an appearance. */
export function badge(appearance, judge = "", overridden = false) {
  const { glyph, word, kind } = appearance;
  return element("span", { class: `badge ${kind}`, title: explainAppearance(appearance, judge, overridden) },
    element("span", { class: "glyph", "aria-hidden": "true" }, glyph), " ", word, element("span", { class: "unseen" }, spokenAppearance(appearance).slice(word.length)));
}
