// The index as typed arrays, and the filters and orders of the list over them.

export const LACKING = 255; // the run lacks the instance, or it has no label
const LAST = 0xffffffff; // the rank after all others
export const FLAGS = { overridden: 1, disputed: 2, truncated: 4 };
export const SORTS = { run: "run order", changed: "most changed", shortest: "shortest answers", longest: "longest answers", slowest: "slowest answers" };

function decodeArray(text, Values) {
  if (Uint8Array.fromBase64) return new Values(Uint8Array.fromBase64(text).buffer);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = binary.charCodeAt(place);
  return new Values(bytes.buffer);
}

/** Return an index with typed arrays in place of texts. */
export function decodeIndex(index) {
  const condition = decodeArray(index.condition, Uint8Array);
  const strata = Object.entries(index.strata).map(([key, { values, codes }]) => [key, { values, codes: decodeArray(codes, Uint32Array) }]);
  const runs = index.runs.map((run) => ({
    outcome: decodeArray(run.outcome, Uint8Array),
    label: decodeArray(run.label, Uint8Array),
    flags: decodeArray(run.flags, Uint8Array),
    tokens: decodeArray(run.tokens, Uint32Array),
    seconds: decodeArray(run.seconds, Float32Array),
  }));
  return { revision: index.revision, size: condition.length, condition, group: decodeArray(index.group, Uint32Array), strata: new Map(strata), runs };
}

/** Write new codes into an index. */
export function applyChanges(index, changes) {
  for (const { number, run, ...codes } of changes) {
    const columns = index.runs[run];
    if (columns && number < index.size) for (const [key, value] of Object.entries(codes)) columns[key][number] = value;
  }
}

/** Return the numbers of the instances that a state selects, in its order. `changed` and `searched` are numbers, or null for all. */
export function selectInstances(index, head, state, changed, searched) {
  const kept = new Uint8Array(index.size).fill(1);
  const runs = chosenRuns(index, state);
  if (state.condition.length) keepCodes(kept, index.condition, codesOf(state.condition, head.conditions));
  for (const [key, values] of Object.entries(state.strata)) {
    const column = index.strata.get(key);
    if (column) keepCodes(kept, column.codes, [0, ...codesOf(values, column.values)]);
  }
  if (state.outcome.length || state.label.length || state.flag.length) keepAnswers(kept, runs, answerFilter(head, state));
  if (state.differ) keepDiffering(kept, runs.length > 1 ? runs : chosenRuns(index, { ...state, run: [] }), head.outcomes.indexOf("pending"));
  for (const numbers of [changed, searched]) if (numbers) keepNumbers(kept, numbers);
  const selected = new Uint32Array(index.size);
  let count = 0;
  for (let number = 0; number < kept.length; number += 1) if (kept[number]) selected[count++] = number;
  return sortNumbers(selected.subarray(0, count), index, head, runs, state.sort);
}

/** Return 1 for each of `names` that is among `values`, and 0 for the others. */
function codesOf(values, names) {
  const wanted = new Set(values);
  return names.map((name) => (wanted.has(name) ? 1 : 0));
}

function keepCodes(kept, codes, allowed) {
  for (let number = 0; number < kept.length; number += 1) if (!allowed[codes[number]]) kept[number] = 0;
}

function keepNumbers(kept, numbers) {
  const wanted = new Uint8Array(kept.length);
  for (const number of numbers) wanted[number] = 1;
  for (let number = 0; number < kept.length; number += 1) kept[number] &= wanted[number];
}

/** Return the columns of the runs that filters on answers are of: those chosen, else those on display, else all. */
function chosenRuns(index, { run, hidden }) {
  const displayed = index.runs.filter((_, place) => !hidden.includes(place));
  const chosen = index.runs.filter((_, place) => run.includes(place));
  return [chosen, displayed].find((runs) => runs.length) ?? index.runs;
}

/** Return the test of an answer for one of the outcomes, one of the labels, and one of the flags of a state. */
function answerFilter(head, state) {
  const table = (values, names) => new Uint8Array(256).map((_, code) => (values.length ? Number(values.includes(names[code])) : 1));
  const outcomes = table(state.outcome, head.outcomes);
  const labels = table(state.label, head.labels);
  const mask = state.flag.reduce((bits, flag) => bits | (FLAGS[flag] ?? 0), 0);
  return ({ outcome, label, flags }, number) => outcomes[outcome[number]] && labels[label[number]] && (!mask || flags[number] & mask);
}

/** Keep the instances for which an answer passes. */
function keepAnswers(kept, runs, passes) {
  const matching = new Uint8Array(kept.length);
  for (const run of runs) for (let number = 0; number < kept.length; number += 1) if (passes(run, number)) matching[number] = 1;
  for (let number = 0; number < kept.length; number += 1) kept[number] &= matching[number];
}

/** Keep the instances whose answers, as far as there are any, have more than one label, or outcome where there is no label. */
function keepDiffering(kept, runs, pending) {
  const first = new Int16Array(kept.length).fill(-1);
  const differ = new Uint8Array(kept.length);
  for (const { outcome, label } of runs) {
    for (let number = 0; number < kept.length; number += 1) {
      if (outcome[number] === LACKING || outcome[number] === pending) continue;
      const value = label[number] === LACKING ? 256 + outcome[number] : label[number];
      if (first[number] < 0) first[number] = value;
      else if (first[number] !== value) differ[number] = 1;
    }
  }
  for (let number = 0; number < kept.length; number += 1) kept[number] &= differ[number];
}

/** Sort by rank and then by number: as single numbers, which is several times as quick as comparing pairs. */
function sortNumbers(numbers, index, head, runs, sort) {
  if (sort === "run" || !Object.hasOwn(SORTS, sort)) return numbers;
  const ranks = sort === "changed" ? changeRanks(index, head) : extremeRanks(index.size, runs, sort);
  const keys = Float64Array.from(numbers, (number) => ranks[number] * index.size + number).sort();
  return Uint32Array.from(keys, (key) => key % index.size);
}

/** Return ranks by the length or time of each instance's most extreme answer; where it is unknown, the last. */
function extremeRanks(size, runs, sort) {
  const ranks = new Uint32Array(size).fill(LAST);
  for (const { tokens, seconds } of runs) {
    const values = sort === "slowest" ? new Uint32Array(seconds.buffer) : tokens; // the bits of floats from 0 are in their order
    for (let number = 0; number < size; number += 1) {
      if (!values[number]) continue;
      const rank = sort === "shortest" ? values[number] : LAST - values[number];
      if (rank < ranks[number]) ranks[number] = rank;
    }
  }
  return ranks;
}

/** Return ranks by what differs from the baseline: 2 for each run that is right where it is wrong or the reverse, 1 for another label. */
function changeRanks(index, head) {
  const [baseline, ...others] = index.runs;
  const ranks = new Uint32Array(index.size).fill(LAST);
  const judged = new Uint8Array(256);
  judged[head.outcomes.indexOf("right")] = judged[head.outcomes.indexOf("wrong")] = 1;
  for (const { outcome, label } of others) {
    for (let number = 0; number < index.size; number += 1) {
      if (!judged[outcome[number]] || !judged[baseline.outcome[number]]) continue;
      if (outcome[number] !== baseline.outcome[number]) ranks[number] -= 2;
      else if (label[number] !== baseline.label[number]) ranks[number] -= 1;
    }
  }
  return ranks;
}

/** Return how many of these instances have each code. */
export function countCodes(numbers, codes, size) {
  const counts = new Uint32Array(size);
  for (const number of numbers) if (codes[number] < size) counts[codes[number]] += 1;
  return counts;
}

/** Return how many of these instances have an answer with each code of a column, among the answers that a state selects. */
export function countAnswers(numbers, index, head, state, column, size) {
  const counts = new Uint32Array(size);
  const last = new Int32Array(size).fill(-1); // an instance counts once for each code
  const passes = answerFilter(head, state);
  const runs = chosenRuns(index, state);
  for (const number of numbers) {
    for (const run of runs) {
      const code = run[column][number];
      if (code >= size || last[code] === number || !passes(run, number)) continue;
      last[code] = number;
      counts[code] += 1;
    }
  }
  return counts;
}

/** Return how many of these instances have an answer with each flag, among the answers that a state selects. */
export function countFlags(numbers, index, head, state) {
  const passes = answerFilter(head, state);
  const runs = chosenRuns(index, state);
  const hasFlag = (bit) => (number) => runs.some((run) => run.flags[number] & bit && passes(run, number));
  return Object.values(FLAGS).map((bit) => numbers.filter(hasFlag(bit)).length);
}
