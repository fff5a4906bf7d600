// Labelling and overriding: what the other parts of the page call.

import { element } from "./dom.js";
import { LabellingSession } from "./labelling_session.js";
import { OverrideForm } from "./override.js";

const LABEL_OFFER = "You see a random sample, one answer at a time beside its question and references; the run, the condition and all labels stay hidden.";

let labellingNow = null; // the session on the page
const overrideForms = new Map(); // the form of each answer, so that nothing typed is lost when the column is drawn again

/** Draw the labelling of a run, if the state names one, and return true if it takes the whole page; else offer it. */
export function drawLabelling(page) {
  const place = document.getElementById("labelling");
  const run = page.head.saved ? null : page.head.runs[page.state.labelling] ?? null;
  if (labellingNow && (!run?.writable || labellingNow.run !== page.state.labelling)) endLabelling();
  if (!run?.writable) {
    drawOffer(page, place);
    return false;
  }
  if (!labellingNow) {
    labellingNow = new LabellingSession(page, place, page.state.labelling);
    labellingNow.open();
  }
  return true;
}

/** Offer the runs that can be labelled, above the list; they are drawn again only where they have changed. */
function drawOffer(page, place) {
  const runs = page.head.saved ? [] : page.head.runs.map((run, number) => ({ run, number })).filter(({ run }) => run.writable && run.done === run.total);
  const offers = JSON.stringify(runs.map(({ run, number }) => [run.label, number]));
  place.hidden = !runs.length || page.state.instance !== null;
  if (place.dataset.offers === offers) return;
  place.dataset.offers = offers;
  const opened = place.querySelector("details")?.open ?? false;
  place.replaceChildren(element("details", { class: "label-offer", open: opened }, element("summary", {}, "Label answers blindly"),
    element("p", {}, LABEL_OFFER), runs.map(({ run, number }) => element("button", { type: "button", onclick: () => page.set({ labelling: number }) }, `Label answers of ${run.label}`))));
}

function endLabelling() {
  const session = labellingNow;
  labellingNow = null;
  session.close();
}

/** Return what overrides a run's label of an instance, or null where that is not possible. `run` is its place on the page. */
export function overrideForm(page, instance, run) {
  const answer = instance.answers[run];
  if (page.head.saved || !page.head.runs[run].writable || !answer || ["error", "pending"].includes(answer.outcome)) return null;
  const key = `${instance.number}/${run}/${answer.id}`;
  const node = overrideForms.get(key) ?? new OverrideForm(page, instance.number, run, answer.id).node;
  overrideForms.set(key, node);
  for (const [other, { lastChild }] of overrideForms) if (lastChild.hidden && !other.startsWith(`${instance.number}/`)) overrideForms.delete(other);
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  if (focused) queueMicrotask(() => focused.focus({ preventScroll: true })); // drawing the column takes the focus away
  return node;
}
