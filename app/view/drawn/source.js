// The contents of the page: from the server that sent it, or from the file that it was saved in.
// The data types are those of app/view/contents/data_types.py.

/** Contents from the server. Every method rejects with an Error whose message can be displayed. */
export class ServedSource {
  head() { return this.get("api/head"); }
  index() { return this.get("api/index"); }
  overview() { return this.get("api/overview"); }
  rows(numbers) { return this.get(`api/rows?numbers=${numbers.join(",")}`); }
  instance(number) { return this.get(`api/instance?number=${number}`); }
  /** Return the numbers of the instances in which all words occur: in the id, the question or an answer of any run. */
  search(words) { return this.get(`api/search?words=${encodeURIComponent(words)}`); }
  /** Return a part of an answer that is too long for its instance: {text, length}. */
  answerText(number, run, from) { return this.get(`api/answer?number=${number}&run=${run}&from=${from}`); }
  /** Resolve with what has changed since a revision, or after half a minute without any change. */
  changes(since, signal) { return this.get(`api/changes?since=${since}`, signal); }

  async get(address, signal) { return this.result(fetch(address, { signal, cache: "no-store" })); }

  /** Send a label, an override or an undo; see app/view/contents/labelling.py. */
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
      throw new Error("The server has ended. Run `rashomon view` again; every label is saved.");
    }
    if (!response.ok) throw new Error((await response.text()).slice(0, 500) || `The server answered ${response.status}.`);
    return response.json();
  }
}

/** Contents that the page was saved with; nothing leaves the page. */
export class SavedSource {
  constructor(contents) { this.contents = contents; }
  async head() { return this.contents.head; }
  async index() { return this.contents.index; }
  async overview() { return this.contents.overview; }
  async rows(numbers) { return numbers.map((number) => this.contents.rows[number]); }
  async instance(number) { return this.withMedia(this.contents.instances[number]); }
  async answerText(number, run, from) {
    const { answer, length } = this.contents.instances[number].answers[run];
    return { text: [...answer].slice(from).join(""), length };
  }
  async search(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return this.contents.instances
      .filter((instance) => {
        const texts = [instance.id, instance.question, ...instance.answers.map((answer) => answer?.answer ?? "")].join("\n").toLowerCase();
        return wanted.every((word) => texts.includes(word));
      })
      .map((instance) => instance.number);
  }
  changes() { return new Promise(() => {}); }

  /** Media are in the file once each, under the keys that the addresses of instances are. */
  withMedia(instance) {
    const media = instance.media.map((medium) => ({
      ...medium,
      original: this.contents.media[medium.original] ?? null,
      preview: this.contents.media[medium.preview] ?? null,
    }));
    return { ...instance, media };
  }
}

/** Return the contents of this page. */
export function openSource() {
  const saved = document.getElementById("contents");
  return saved ? new SavedSource(JSON.parse(saved.textContent)) : new ServedSource();
}
