// Files are sent one after the other, each with its own progress and its own key against sending twice.

import { upload } from "./api.js";
import { h, say } from "./dom.js";
import { share } from "./format.js";
import { problemNotice } from "./notices.js";
import { FORMATS } from "./parts.js";

const OUTPUTS_BY_DEFAULT = ["markdown", "json", "pdf", "xlsx"];
const AT_A_TIME = 2;
const USUAL_PRIORITY = 5;

// It outlives the view: what is on its way goes on, and is there again when somebody comes back.
let queue = null;

export function uploadCard(me, { onSent, signal }) {
  const chosen = h("input", { id: "files", type: "file", multiple: true, class: "unseen" });
  const zone = h(
    "div", { class: "zone" },
    h("p", {}, h("strong", {}, "Drop PDFs and images here")),
    h("p", { class: "quiet" }, "or"),
    h("label", { class: "button strong", for: "files" }, "Choose files"),
    chosen,
  );
  const form = h("form", { class: "options-grid", on: { submit: (event) => event.preventDefault() } }, optionFields(me));
  queue ??= new SendQueue();
  Object.assign(queue, { form, onSent });
  chosen.addEventListener("change", () => {
    queue.add([...chosen.files]);
    chosen.value = "";
  });
  takeDrops(zone, (files) => queue.add(files), signal);
  return h(
    "section", { class: "card", "aria-labelledby": "send-title" },
    h("h2", { id: "send-title", class: "unseen" }, "Send documents"),
    zone,
    h("details", { class: "options" }, h("summary", {}, "Options"), form),
    queue.list,
  );
}

function takeDrops(zone, onFiles, signal) {
  const mark = (isOver) => zone.classList.toggle("over", isOver);
  // A file that misses the zone must not take the place of this page.
  window.addEventListener("dragover", (event) => event.preventDefault(), { signal });
  window.addEventListener("drop", (event) => event.preventDefault(), { signal });
  zone.addEventListener("dragover", () => mark(true));
  zone.addEventListener("dragleave", (event) => zone.contains(event.relatedTarget) || mark(false));
  zone.addEventListener("drop", (event) => {
    mark(false);
    const files = [...event.dataTransfer.files];
    if (files.length > 0) onFiles(files);
  });
}

function optionFields(me) {
  return [
    field("route", "Route", choice("route", [["", "by triage"], ["ocr", "OCR alone"], ["vlm", "every page to the VLM"]])),
    field("profile", "Triage profile", choice("profile", [["", "as the server has it"], ["thrifty", "thrifty"], ["balanced", "balanced"], ["thorough", "thorough"]])),
    field("languages", "Languages", h("input", { id: "o-languages", name: "languages", placeholder: "eng+deu", autocomplete: "off", spellcheck: "false" })),
    field("priority", "Priority", choice("priority", priorities(me.max_priority))),
    me.is_admin && field("cost_centre", "Cost centre", h("input", { id: "o-cost_centre", name: "cost_centre", placeholder: me.cost_centre, autocomplete: "off" })),
    field("password", "Password of the PDF", h("input", { id: "o-password", name: "password", type: "password", autocomplete: "off" })),
    h("fieldset", { class: "wide" }, h("legend", {}, "Outputs to make at once"), h("div", { class: "checks" }, FORMATS.map(([name, label]) => h(
      "label", {}, h("input", { type: "checkbox", name: "outputs", value: name, checked: OUTPUTS_BY_DEFAULT.includes(name) }), label,
    )))),
  ];
}

function priorities(most) {
  const usual = Math.min(USUAL_PRIORITY, most);
  const named = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0].filter((number) => number <= most && number !== usual);
  return [["", `usual (${usual})`], ...named.map((number) => [String(number), number === 9 ? "9, first" : number === 0 ? "0, last" : String(number)])];
}

function field(name, label, input) {
  return h("div", { class: "field" }, h("label", { for: `o-${name}` }, label), input);
}

function choice(name, options) {
  return h("select", { id: `o-${name}`, name }, options.map(([value, label]) => h("option", { value }, label)));
}

class SendQueue {
  constructor() {
    this.list = h("ul", { class: "sending", "aria-label": "Files on their way" });
    this.waiting = [];
    this.busy = 0;
    window.addEventListener("beforeunload", (event) => this.busy > 0 && event.preventDefault());
  }

  add(files) {
    const wishes = this.wishes();
    for (const file of files) {
      const row = new SendRow(file, wishes, (failed) => this.again(failed));
      this.list.append(row.element);
      this.waiting.push(row);
    }
    say(files.length === 1 ? `sending ${files[0].name}` : `sending ${files.length} files`);
    this.next();
  }

  again(row) {
    this.waiting.push(row);
    this.next();
  }

  wishes() {
    const given = new FormData(this.form);
    const outputs = given.getAll("outputs");
    given.delete("outputs");
    const wishes = [...given.entries()].map(([name, value]) => [name, name === "password" ? value : value.trim()]).filter(([, value]) => value !== "");
    return outputs.length > 0 ? [...wishes, ["outputs", outputs.join(",")]] : wishes;
  }

  next() {
    while (this.busy < AT_A_TIME && this.waiting.length > 0) {
      this.busy += 1;
      this.send(this.waiting.shift());
    }
  }

  async send(row) {
    const made = await row.send();
    this.busy -= 1;
    if (made) {
      row.element.remove();
      this.onSent(made);
    }
    this.next();
  }
}

class SendRow {
  constructor(file, wishes, sendAgain) {
    Object.assign(this, { file, wishes, sendAgain });
    this.key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    this.bar = h("progress", { max: 1, value: 0, "aria-label": `sent of ${file.name}` });
    this.note = h("span", { class: "numbers" }, "waits");
    this.stop = h("button", { type: "button", class: "plain", on: { click: () => this.stopped() } }, "Stop");
    this.problem = h("div", {});
    this.element = h("li", {}, h("div", { class: "row" }, h("span", { class: "grow name" }, file.name), this.bar, this.note, this.stop), this.problem);
  }

  stopped() {
    this.isStopped = true;
    this.ending?.abort();
    this.element.remove();
    say(`${this.file.name} is not sent`);
  }

  // The document, or null.
  async send() {
    if (this.isStopped) return null;
    this.ending = new AbortController();
    this.problem.replaceChildren();
    this.stop.textContent = "Stop";
    const form = new FormData();
    for (const [name, value] of this.wishes) form.append(name, value);
    form.append("file", this.file, this.file.name);
    try {
      return await upload(form, { onProgress: (part) => this.progressed(part), idempotencyKey: this.key, signal: this.ending.signal });
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
      return null;
    }
  }

  progressed(part) {
    this.bar.value = part;
    this.note.textContent = part < 1 ? share(part) : "being stored";
  }

  failed(error) {
    this.note.textContent = "not sent";
    this.problem.replaceChildren(problemNotice(error, () => this.sendAgain(this)));
    this.stop.textContent = "Dismiss";
  }
}
