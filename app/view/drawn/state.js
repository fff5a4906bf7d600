// The state of the page. The address after # holds it, so that a link to a view works, from a file too.

export const EMPTY = {
  instance: null, // the number of the open instance
  labelling: null, // the place of the run whose answers are labelled, on the whole page
  condition: [], outcome: [], label: [], // any of several
  flag: [], // "overridden", "disputed", "truncated"
  run: [], // the places of the runs that the outcome, label and flag are of; empty: any
  strata: {}, // key: values
  differ: false, // the runs' labels differ
  changed: "", // "lost", "gained" or "differs", of the run `against` beside the baseline
  against: null, // the place of a run; null stands for the first model, else the first rule
  words: "", // searched for
  sort: "run", // or "changed", "shortest", "longest", "slowest"
  hidden: [], // the places of runs whose column is not displayed
  table: "", // the table of the results on display
};
export const FILTERS = ["condition", "outcome", "label", "flag", "run", "strata", "differ", "changed", "against", "words"];

/** Return an empty state. */
export function emptyState() {
  return { ...structuredClone(EMPTY), strata: Object.create(null) };
}

/** Return the state in the address. What cannot be read is left out. */
export function readState() {
  const state = emptyState();
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (key.startsWith("in.")) (state.strata[key.slice(3)] ??= []).push(value);
    else if (["instance", "against", "labelling"].includes(key) && /^\d{1,9}$/.test(value)) state[key] = Number(value);
    else if (["run", "hidden"].includes(key) && /^\d{1,4}$/.test(value)) state[key].push(Number(value));
    else if (["condition", "outcome", "label", "flag"].includes(key)) state[key].push(value);
    else if (key === "differ") state.differ = true;
    else if (["words", "sort", "changed", "table"].includes(key)) state[key] = value;
  }
  return state;
}

/** Return the id of an instance that the address names instead of its number; null if there is none. */
export function idInAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("id");
}

/** Write the state into the address; `replace` adds no step to the browser's history. */
export function writeState(state, { replace = false } = {}) {
  const address = addressOf(state);
  if (address === (location.hash || "#")) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
}

/** Return the place of the run that is compared with the baseline. */
export function comparedRun({ head, state }) {
  if (state.against !== null) return state.against;
  return Math.max(1, head.runs.findIndex((run, place) => place > 0 && !run.is_policy));
}

/** Return the part of the address that holds a state. */
export function addressOf(state) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (key === "strata") for (const [name, values] of Object.entries(value)) values.forEach((item) => parameters.append(`in.${name}`, item));
    else if (Array.isArray(value)) value.forEach((item) => parameters.append(key, item));
    else if (value !== EMPTY[key]) parameters.append(key, value === true ? "1" : value);
  }
  return `#${parameters}`;
}
