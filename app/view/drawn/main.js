// The page: reads its contents, draws what the state says, and follows the runs.

import { applyChanges, decodeIndex, selectInstances } from "./columns.js";
import { say } from "./dom.js";
import { drawFilters } from "./filters.js";
import { countMatches, drawHeader, drawRuns, followTheme } from "./header.js";
import { drawInstance } from "./instance.js";
import { listenToKeys, openHelp } from "./keys.js";
import { drawLabelling } from "./labelling.js";
import { drawList, forgetTexts, printList } from "./list.js";
import { closeDialogs } from "./media.js";
import { openSource, SessionEndedError } from "./source.js";
import { drawOverview } from "./overview.js";
import { comparedRun, FILTERS, idInAddress, readState, writeState } from "./state.js";

const SEARCHED_AGAIN = 5000; // ms after which a search is repeated where the runs have changed
const LONGEST_PAUSE = 30000; // ms between two attempts to reach the server

/** The page's contents and state, which every part draws. */
class Page {
  constructor(source, head) {
    this.source = source;
    this.head = head;
    this.index = null; // the index with typed arrays
    this.overview = null;
    this.revision = head.revision;
    this.instanceRevision = head.revision; // the last one that changed the open instance
    this.state = this.validState();
    this.cursor = this.state.instance; // the number of the instance that is marked in the list
    this.shown = null; // the open instance, once it is read
    this.displayed = null; // its number, once its pictures are displayed
    this.search = { words: "", numbers: null, revision: 0, time: 0 };
    this.selection = { key: null, numbers: new Uint32Array() };
  }

  /** Say that the words have not been searched for yet. */
  get searching() { return this.state.words !== this.search.words; }

  /** Say that what the filters need is still being read. */
  get waiting() { return this.searching || (this.state.changed && !this.overview?.complete); }

  /** Return the state in the address, as far as this page has what it names. */
  validState() {
    const state = readState();
    const { runs, instances } = this.head;
    state.hidden = state.hidden.filter((place) => place < runs.length);
    state.run = state.run.filter((place) => place < runs.length);
    if (state.against < 1 || state.against >= runs.length) state.against = null;
    if (state.instance !== null && state.instance >= instances) state.instance = null;
    return state;
  }

  /** Take over the state in the address, where the number of an instance takes the place of its id. */
  async readAddress() {
    this.state = this.validState();
    const id = idInAddress();
    if (id !== null) {
      const number = await this.source.number(id).catch((error) => say(error.message, { stay: true }));
      if (idInAddress() !== id) return; // it is another address by now
      this.state.instance = number ?? null;
      writeState(this.state, { replace: true });
    }
    this.cursor = this.state.instance ?? this.cursor;
    this.draw();
  }

  /** Change the state, write it into the address, and draw what depends on it. */
  set(changes, options) {
    Object.assign(this.state, changes);
    writeState(this.state, options);
    this.draw();
  }

  /** Return the places of the runs whose columns are displayed. */
  visibleRuns() {
    return [...this.head.runs.keys()].filter((place) => !this.state.hidden.includes(place));
  }

  isFiltered() {
    const { state } = this;
    return FILTERS.some((key) => !["run", "against"].includes(key) && (key === "strata" ? Object.keys(state.strata).length : state[key].length || state[key] === true));
  }

  /** Return the numbers of the instances that the filters select, in the order of the list. */
  matching() {
    if (!this.index) return this.selection.numbers;
    const { state, search, overview } = this;
    const key = JSON.stringify([this.revision, overview?.revision, overview?.complete, search.words, search.time, state.sort, state.hidden, FILTERS.map((name) => state[name])]);
    if (this.selection.key !== key) this.selection = { key, numbers: this.select() };
    return this.selection.numbers;
  }

  /** Return the numbers of the instances that the filters select with these changes of the state. */
  select(changes = {}) {
    const state = { ...this.state, ...changes };
    const pair = state.changed ? this.overview?.pairs.find(({ run }) => run === comparedRun(this)) : null;
    const changed = state.changed ? (Object.hasOwn(pair?.changes ?? {}, state.changed) ? pair.changes[state.changed] : []) : null;
    return selectInstances(this.index, this.head, state, changed, this.search.numbers);
  }

  draw() {
    if (drawLabelling(this)) return;
    const { words, revision, time } = this.search;
    if (this.searching || (words && revision !== this.revision && Date.now() - time > SEARCHED_AGAIN)) this.find();
    document.getElementById("overview").hidden = this.state.instance !== null;
    for (const drawPart of [countMatches, drawOverview, drawFilters, drawList, drawInstance]) {
      try {
        drawPart(this);
      } catch (error) { // the other parts are drawn nevertheless
        console.error(error);
        say(`A part of the page cannot be drawn: ${error.message}`);
      }
    }
  }

  /** Search for the words of the state; until then the list stays as it is. */
  async find() {
    const { revision, state: { words } } = this;
    if (this.finding === words) return;
    this.finding = words;
    let numbers = words ? [] : null;
    try {
      if (words) numbers = await this.source.search(words);
    } catch (error) {
      say(error.message);
    }
    if (this.state.words === words) this.search = { words, numbers, revision, time: Date.now() };
    this.finding = null;
    this.draw();
  }

  async readIndex() {
    const index = decodeIndex(await this.source.index());
    if (index.size !== this.head.instances) this.head = { ...this.head, instances: index.size };
    this.index = index;
    this.revision = index.revision;
    this.draw();
  }

  /** Take over what has changed in the runs. */
  async take({ revision, runs, changes, whole }) {
    if (whole) {
      this.head = await this.source.head();
      forgetTexts();
      this.instanceRevision = revision;
      await this.readIndex();
    } else {
      this.head = { ...this.head, runs, revision };
      applyChanges(this.index, changes);
      forgetTexts(changes.map(({ number }) => number));
      this.revision = revision;
      const { group } = this.index;
      if (changes.some(({ number }) => group[number] === group[this.state.instance])) this.instanceRevision = revision;
    }
    drawRuns(this);
    this.draw();
  }
}

/** Follow the runs. A server that does not answer is asked again after a pause, which doubles, or when the page is looked at. */
async function follow(page) {
  let pause = 0;
  let ended = false;
  for (;;) {
    try {
      const changes = await page.source.changes(page.revision);
      if (ended) { location.reload(); return; } // another server, whose runs may be others
      if (pause) say("Connected again.");
      pause = 0;
      if (changes.whole || changes.revision !== page.revision) await page.take(changes);
    } catch (error) {
      say(error.message, { stay: true });
      ended ||= error instanceof SessionEndedError;
      pause = Math.min(Math.max(2 * pause, 1000), LONGEST_PAUSE);
      await rested(pause);
    }
  }
}

function rested(pause) {
  return new Promise((resolve) => {
    const stop = new AbortController();
    const end = () => { stop.abort(); clearTimeout(timer); resolve(); };
    const timer = setTimeout(end, pause);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) end(); }, { signal: stop.signal });
    addEventListener("online", end, { signal: stop.signal });
  });
}

async function start() {
  followTheme();
  const source = openSource();
  const page = new Page(source, await source.head());
  drawHeader(page, openHelp);
  listenToKeys(page);
  addEventListener("popstate", () => { closeDialogs(); page.readAddress(); });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address is for the state
    document.querySelector(page.state.instance === null ? ".rows" : ".question")?.focus();
  });
  addEventListener("beforeprint", () => printList(page, true));
  addEventListener("afterprint", () => printList(page, false));
  await page.readAddress();
  await page.readIndex();
  follow(page);
}

start().catch((error) => say(error.message, { stay: true }));
