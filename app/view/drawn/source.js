// The contents of the page: from the server that sent it, or from the file that it was saved in.
// The data types are those of app/view/contents/page_types.py.

/** The server has ended, or another one is in its place. */
export class SessionEndedError extends Error {}

/** Contents from the server. Every method rejects with an Error whose message can be displayed. */
export class ServedSource {
  head() { return this.get("api/head"); }
  index() { return this.get("api/index"); }
  overview() { return this.get("api/overview"); }
  /** Return the results without the comparison of runs, which takes longest. */
  firstResults() { return this.get("api/overview?part=first"); }
  rows(numbers) { return this.get(`api/rows?numbers=${numbers.join(",")}`); }
  /** Return the number of the instance with an id. */
  async number(id) { return (await this.get(`api/number?id=${encodeURIComponent(id)}`)).number; }
  instance(number) { return this.get(`api/instance?number=${number}`); }
  /** Return the numbers of the instances in which all words occur: in the id, the question or an answer of any run. */
  search(words) { return this.get(`api/search?words=${encodeURIComponent(words)}`); }
  /** Return a part of an answer that is too long for its instance: {text, length}. */
  answerText(number, run, from) { return this.get(`api/answer?number=${number}&run=${run}&from=${from}`); }
  /** Resolve with what has changed since a revision, or after half a minute without any change. */
  changes(since, signal) { return this.get(`api/changes?since=${since}`, signal); }

  async get(address, signal) { return this.result(fetch(address, { signal, cache: "no-store" })); }

  /** Send a label, an override or an undo; see app/view/contents/page_labelling.py. */
  async post(address, body) {
    const headers = { "Content-Type": "application/json" };
    return this.result(fetch(address, { method: "POST", headers, body: JSON.stringify(body) }));
  }

  async result(request) {
    let response;
    try {
      response = await request;
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new SessionEndedError("The server has ended; every label is saved. Run `rashomon view` again and open its link: then this page goes on, if the port is the same.");
    }
    if (response.status === 403) throw new SessionEndedError(await response.text());
    if (!response.ok) throw new Error((await response.text()).slice(0, 500) || `The server answered ${response.status}.`);
    return response.json();
  }
}

/** Contents that the page was saved with; nothing leaves the page. See app/view/saved/saved_page.py for its elements. */
export class SavedSource {
  constructor(contents) {
    this.contents = contents;
    this.blocks = new Map(); // the parsed blocks of rows and instances
  }
  async head() { return this.contents.head; }
  async index() { return this.contents.index; }
  async overview() { return this.contents.overview; }
  firstResults() { return this.overview(); }
  async rows(numbers) { return numbers.map((number) => this.item("rows", number)); }
  async number(id) {
    const number = [...Array(this.contents.head.instances).keys()].find((place) => this.item("rows", place).id === id);
    if (number === undefined) throw new Error(`${id} is no instance of these runs.`);
    return number;
  }
  async instance(number) { return this.withMedia(this.item("instances", number)); }
  async answerText() { throw new Error("The file has only the beginning of this answer."); }
  async search(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return [...Array(this.contents.head.instances).keys()].filter((number) => {
      const { id, question, answers } = this.item("instances", number);
      const texts = [id, question, ...answers.flatMap((answer) => (answer ? [answer.answer, ...answer.repeats.map((repeat) => repeat.answer)] : []))].join("\n").toLowerCase();
      return wanted.every((word) => texts.includes(word));
    });
  }
  changes() { return new Promise(() => {}); }

  /** Return an item of a block, which is parsed once. */
  item(kind, number) {
    const id = `${kind}-${Math.floor(number / this.contents.block)}`;
    if (!this.blocks.has(id)) this.blocks.set(id, JSON.parse(document.getElementById(id).textContent));
    return this.blocks.get(id)[number % this.contents.block];
  }

  /** Media are in the file once each, in elements whose ids are the addresses of instances. */
  withMedia(instance) {
    const text = (id) => document.getElementById(id)?.textContent ?? null;
    const media = instance.media.map((medium) => ({ ...medium, original: text(medium.original), preview: text(medium.preview) }));
    return { ...instance, media };
  }
}

/** Return the contents of this page. */
export function openSource() {
  const saved = document.getElementById("contents");
  return saved ? new SavedSource(JSON.parse(saved.textContent)) : new ServedSource();
}
