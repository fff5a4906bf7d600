// The page: reads its contents, and draws what the state says.

import { element, fill, say } from "./dom.js";
import { drawFilters } from "./filters.js";
import { drawInstance } from "./instance.js";
import { drawLabelling } from "./labelling.js";
import { drawList } from "./list.js";
import { openSource } from "./source.js";
import { drawOverview } from "./overview.js";
import { readState, writeState } from "./state.js";

/** The page's contents and state, which every part draws. */
class Page {
  constructor(source, head) {
    this.source = source;
    this.head = head;
    this.index = null; // the index with typed arrays
    this.overview = null;
    this.state = readState();
  }

  /** Change the state, write it into the address, and draw what depends on it. */
  set(changes, options) {
    Object.assign(this.state, changes);
    writeState(this.state, options);
    this.draw();
  }

  draw() {
    if (drawLabelling(this)) return;
    drawOverview(this);
    drawFilters(this);
    drawList(this);
    drawInstance(this);
  }
}

async function start() {
  const source = openSource();
  const page = new Page(source, await source.head());
  document.title = page.head.title;
  fill("header", element("h1", {}, page.head.title));
  page.draw();
  addEventListener("popstate", () => { page.state = readState(); page.draw(); });
}

start().catch((error) => say(error.message));
