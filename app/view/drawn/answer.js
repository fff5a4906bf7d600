// A run's answer to the open instance: its column.

import { answerAppearance, badge, stateGlyph } from "./appearance.js";
import { button, counted, element } from "./dom.js";
import { overrideForm } from "./labelling.js";
import { mediumName } from "./media.js";

const unfolded = { prompt: true }; // what is unfolded, in this and the next instances

/** Return a part of the page that is folded; `key` names it, so that it stays open when it is drawn again. */
export function folded(key, title, ...children) {
  const node = element("details", { class: "folded", open: unfolded[key] ?? false, ontoggle: () => { unfolded[key] = node.open; } }, element("summary", {}, title), children);
  return node;
}

/** Return a list of names with their values; a pair without a value is left out. */
export function pairList(items) {
  const present = items.filter(([, value]) => value !== null && value !== "" && value !== undefined);
  return present.length ? element("dl", { class: "pairs" }, present.map(([name, value]) => [element("dt", {}, name), element("dd", { class: "text" }, value)])) : null;
}

/** Return a prompt as sent: the messages of each step, with the places of media in them. */
export function drawPrompt(steps, media) {
  return steps.map((messages, step) => [
    steps.length > 1 && element("h4", {}, `Step ${step + 1}`),
    messages.map(({ role, parts }) => element("div", { class: "message" }, element("span", { class: "role" }, role), element("span", { class: "text" },
      parts.map(({ text, medium }) => (medium === null ? text : element("span", { class: "place" }, mediumName(media, medium))))))),
  ]);
}

/** Return the column of a run. */
export function drawAnswer(page, instance, place) {
  const run = page.head.runs[place];
  const answer = instance.answers[place];
  const appearance = answer && answerAppearance(page.head, instance.condition, answer.outcome, answer.label);
  return element("article", { class: "answer", "data-run": place, "aria-label": `Answer of ${run.label}` },
    element("header", {},
      element("div", {}, element("b", {}, place < 9 && [element("kbd", {}, place + 1), " "], run.label)),
      answer ? element("div", {}, badge(appearance, answer.judge, answer.overridden), answerMarks(answer)) : element("span", { class: "none" }, lackingReason(run))),
    answer && answerParts(page, instance, place, answer));
}

function lackingReason(run) {
  if (run.problem) return run.problem;
  return `${stateGlyph(run.state)} The run lacks this instance.`;
}

function answerMarks({ truncated, overridden }) {
  return element("span", {}, overridden && element("span", { class: "mark", title: "A person's label is in force" }, "* overridden"), " ",
    truncated && element("span", { class: "mark", title: "The answer ended at the limit of tokens" }, "truncated"));
}

function answerParts(page, instance, place, answer) {
  return [
    answer.error && element("p", { class: "problem text" }, answer.error),
    answer.reason && element("p", { class: "reason text" }, "Reason: ", answer.reason),
    answer.reasoning && folded(`reasoning ${place}`, "Reasoning", element("p", { class: "text muted" }, answer.reasoning)),
    answerText(page, instance, place, answer),
    pairList([["Behaviour", answer.behaviour], ["Judge", answer.judge], ["Its own answer", answer.own_answer]]),
    otherVerdicts(place, answer),
    answerRepeats(page, instance, place, answer),
    answer.remarks.map((remark) => element("p", { class: "muted text" }, remark)),
    answerFacts(answer),
    answer.prompt.length > 0 && folded(`prompt ${place}`, "Prompt as sent to this run", drawPrompt(answer.prompt, instance.media)),
    overrideForm(page, instance, place),
  ];
}

function answerText(page, instance, place, answer) {
  if (answer.outcome === "pending" && !answer.answer) return element("p", { class: "none" }, "No answer yet.");
  if (!answer.answer) return answer.error ? null : element("p", { class: "none" }, "The answer is empty.");
  const text = document.createTextNode(answer.answer);
  const node = element("div", { class: "text" }, text);
  let length = [...answer.answer].length; // in characters, as Python counts
  if (length >= answer.length) return node;
  const more = button("", async () => {
    more.disabled = true;
    try {
      const rest = await page.source.answerText(instance.number, place, length);
      text.appendData(rest.text);
      length += [...rest.text].length;
      if (!rest.text) more.replaceWith(element("p", { class: "muted" }, "The rest of the answer is not on this page."));
      else if (length >= answer.length) more.remove();
      else title();
    } catch (error) {
      more.replaceWith(element("p", { class: "problem" }, error.message));
    }
  });
  const title = () => {
    more.textContent = `Show the rest (${counted(answer.length - length)} more characters)`;
    more.disabled = false;
  };
  title();
  return [node, element("div", {}, more)];
}

function otherVerdicts(place, { judge, verdicts }) {
  const others = Object.entries(verdicts).filter(([name, { raw }]) => name !== judge || raw);
  if (!others.length) return null;
  return folded(`verdicts ${place}`, `Verdicts (${Object.keys(verdicts).length})`, pairList(Object.entries(verdicts).map(([name, verdict]) => [name, [
    element("b", {}, verdict.label ?? verdict.status), verdict.reason && ` ${verdict.reason}`,
    verdict.raw && folded(`raw ${place} ${name}`, "Reply of the judge", element("p", { class: "text" }, verdict.raw)),
  ]])));
}

/** Return the other answers of the run to the same question, each a link to its instance. */
function answerRepeats(page, instance, place, answer) {
  if (!answer.repeats.length) return null;
  const item = ({ number, outcome, label, answer: text }) => element("li", {},
    button(badge(answerAppearance(page.head, instance.condition, outcome, label)), () => page.set({ instance: number }), { class: "link" }), " ", element("span", { class: "text" }, text));
  return folded(`repeats ${place}`, [`Repeats: `, answer.repeats.map(({ outcome, label }) => [badge(answerAppearance(page.head, instance.condition, outcome, label)), " "])],
    element("ul", {}, answer.repeats.map(item)));
}

function answerFacts({ completion_tokens: completion, prompt_tokens: prompt, seconds, origin }) {
  const words = { null: "reused from", true: "asked again, and equal to", false: "asked again, and other than" };
  return element("p", { class: "facts" },
    completion !== null && element("span", {}, `${counted(completion)} tokens`),
    prompt !== null && element("span", {}, `${counted(prompt)} prompt tokens`),
    seconds !== null && element("span", {}, seconds < 0.1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(2)} s`),
    origin && element("span", {}, `${words[origin.same]} ${origin.name}: ${origin.instance}`));
}
