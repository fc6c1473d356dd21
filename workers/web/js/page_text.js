// What was read on a page: text with its lines, Markdown, tables, and what it took.

import { ask } from "./api.js";
import { h, replaced, sanitisedFragment } from "./dom.js";
import { count, measure, money, seconds, share, words } from "./format.js";
import { noticeIn } from "./notices.js";
import { figureTable } from "./parts.js";

const UNSURE_BELOW = 0.6;
const TABS = [["text", "Text"], ["markdown", "Markdown"], ["tables", "Tables"], ["attempts", "Attempts"]];

export class PageText {
  constructor({ onLine, onBox }) {
    this.onLine = onLine;
    this.onBox = onBox;
    this.tab = "text";
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "What was read" }, TABS.map(([name, label], place) => h("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "tab-panel",
      on: { click: () => this.choose(name), keydown: (event) => this.moved(event, place) },
    }, label, h("span", { class: "tab-count numbers" }))));
    this.panel = h("div", { class: "tab-panel", role: "tabpanel", id: "tab-panel", tabindex: 0 });
    this.element = h("section", { class: "reading", "aria-label": "Text" }, this.tabs, this.panel);
  }

  show(page, path, signal) {
    Object.assign(this, { page, path, signal });
    const numbers = { tables: page.tables?.length ?? 0, attempts: page.attempts?.length ?? 0 };
    for (const [name, number] of Object.entries(numbers)) {
      this.tabs.querySelector(`#tab-${name} .tab-count`).textContent = number ? ` ${number}` : "";
    }
    this.choose(this.tab);
  }

  moved(event, place) {
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const [name] = TABS[(to + TABS.length) % TABS.length];
    this.choose(name);
    this.tabs.querySelector(`#tab-${name}`).focus();
  }

  choose(name) {
    this.tab = name;
    for (const tab of this.tabs.children) {
      const isChosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${name}`);
    this.lines = [];
    ({ text: () => this.showText(), markdown: () => this.showMarkdown(), tables: () => this.showTables(), attempts: () => this.showAttempts() })[name]();
    this.panel.tabIndex = this.lines.length > 0 ? -1 : 0;
    this.panel.scrollTop = 0;
  }

  showText() {
    const { page } = this;
    const isModels = page.route === "vlm";
    if (!page.text && !page.lines?.length) {
      replaced(this.panel, h("p", { class: "quiet" }, page.route === "blank" ? "This page is blank." : "No text was read on this page."));
      return;
    }
    replaced(this.panel,
      isModels && [h("h2", { class: "small" }, `Written by ${page.vlm?.model_id ?? "the model"}`), h("div", { class: "model-text", dir: "auto" }, page.text),
        page.lines?.length > 0 && h("h2", { class: "small" }, `Lines and boxes, as ${words(page.read_by ?? "the CPU")} read them`)],
      page.lines?.length > 0 ? this.linesOf(page) : h("div", { class: "model-text", dir: "auto" }, page.text));
  }

  // One stop for the tab key; arrows go from line to line.
  linesOf(page) {
    const starts = new Map((page.blocks ?? []).map((block) => [block.first_line, block]));
    const blocks = [];
    page.lines.forEach((line, place) => {
      if (blocks.length === 0 || starts.has(place)) blocks.push(h("div", { class: `block ${starts.get(place)?.kind ?? ""}` }));
      blocks.at(-1).append(this.lineOf(line, place));
    });
    if (this.lines[0]) this.lines[0].tabIndex = 0;
    return h("div", { class: "lines", dir: "auto", role: "group", "aria-label": "Lines, arrow keys go from one to the next" }, blocks);
  }

  lineOf(line, place) {
    const button = h("button", { type: "button", class: "line", tabindex: -1, dir: "auto", on: {
      pointerenter: () => this.onLine(place, false), pointerleave: () => this.onLine(null, false),
      focus: () => this.focused(place), click: () => button.focus(), keydown: (event) => this.stepped(event, place),
    } }, wordsOf(line));
    this.lines.push(button);
    return button;
  }

  focused(place) {
    for (const line of this.lines) line.tabIndex = -1;
    this.lines[place].tabIndex = 0;
    this.mark(place);
    this.onLine(place, true);
  }

  stepped(event, place) {
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: this.lines.length - 1 }[event.key];
    if (to === undefined || !this.lines[to]) return;
    event.preventDefault();
    this.lines[to].focus();
  }

  mark(place) {
    for (const line of this.panel.querySelectorAll(".line.on")) line.classList.remove("on");
    if (place !== null) this.lines[place]?.classList.add("on");
  }

  focusLine(place) {
    if (this.tab !== "text") this.choose("text");
    this.lines[place]?.focus();
  }

  async showMarkdown() {
    const { page, path, signal } = this;
    if (!page.markdown) {
      replaced(this.panel, h("p", { class: "quiet" }, "There is no Markdown of this page."));
      return;
    }
    replaced(this.panel, h("p", { class: "quiet" }, "Loading…"));
    try {
      const response = await ask(`${path}/html`, { signal });
      const text = await response.text();
      if (signal.aborted || this.tab !== "markdown" || this.path !== path) return;
      replaced(this.panel, h("article", { class: "prose", dir: "auto" }, sanitisedFragment(text)));
    } catch (error) {
      if (this.tab === "markdown" && this.path === path) noticeIn(this.panel)(error);
    }
  }

  showTables() {
    const tables = this.page.tables ?? [];
    const regions = (this.page.regions ?? []).filter(({ kind }) => kind === "table").length;
    const empty = regions > 0 ? "A table was seen on this page, and its cells are not known." : "There is no table on this page.";
    replaced(this.panel, tables.length === 0 ? h("p", { class: "quiet" }, empty) : tables.map(({ box, html }, place) => h(
      "figure", { class: "table-of-page", on: { pointerenter: () => this.onBox(box), pointerleave: () => this.onBox(null) } },
      h("figcaption", {}, `Table ${place + 1}`),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Table ${place + 1}`, on: { focus: () => this.onBox(box) } }, sanitisedFragment(html)),
    )));
  }

  showAttempts() {
    const { page } = this;
    const attempts = page.attempts ?? [];
    replaced(this.panel, facts(page), attempts.length === 0
      ? h("p", { class: "quiet" }, "No call to the VLM was made about this page.")
      : callTable(attempts),
    bookings(page), signals(page));
  }
}

function wordsOf(line) {
  if (!line.words?.some((word) => word.confidence !== null && word.confidence < UNSURE_BELOW)) return line.text;
  return line.words.flatMap((word, place) => {
    const isUnsure = word.confidence !== null && word.confidence < UNSURE_BELOW;
    const text = isUnsure ? h("span", { class: "unsure", title: `confidence ${share(word.confidence)}` }, word.text) : word.text;
    return place === 0 ? [text] : [" ", text];
  });
}

function facts(page) {
  const rows = [
    ["Read by", words(page.read_by ?? "–")], ["Confidence", share(page.confidence)], ["Time", seconds(page.elapsed_s)],
    ["Size", page.width_px ? `${count(page.width_px)} × ${count(page.height_px)} px, ${count(Math.round(page.dpi))} dpi` : "–"],
    ["Turned", page.rotation_deg ? `${page.rotation_deg}°` : page.skew_deg ? `${page.skew_deg.toFixed(1)}°` : "no"],
    ["Visual tokens, if sent", count(page.visual_tokens_if_vlm)],
  ];
  return h("dl", { class: "facts-list" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "numbers" }, value))));
}

function callTable(attempts) {
  const columns = [["Call"], ["Model"], ["Verdict"], ["Predicted", true], ["Prompt", true], ["Cached", true], ["Answer", true], ["Time", true]];
  return figureTable("Calls to the VLM", columns, attempts.map((one) => [
    String(one.attempt), one.model_id ?? "–",
    h("span", { class: `chip ${one.verdict === "accepted" ? "good" : "bad"}`, title: one.message ?? null }, words(one.verdict ?? "under way")),
    ...[one.predicted_visual_tokens, one.prompt_tokens, one.cached_tokens, one.completion_tokens].map(count), seconds(one.elapsed_s),
  ]));
}

function bookings(page) {
  const entries = page.booked ?? [];
  if (entries.length === 0) return null;
  const columns = [["Entry"], ["Kind"], ["Outcome"], ["Tokens", true], ["CPU", true], ["Cost", true]];
  return [h("h2", { class: "small" }, "On the ledger"), figureTable("Entries of the ledger about this page", columns, entries.map((one) => [
    String(one.entry_id), words(one.kind), words(one.outcome ?? "–"), count((one.prompt_tokens ?? 0) + (one.completion_tokens ?? 0)), seconds(one.cpu_s), money(one.cost, one.currency),
  ]))];
}

function signals(page) {
  if (!page.signals?.length) return null;
  return h("details", { class: "signals" }, h("summary", {}, `All ${page.signals.length} signals`), h("dl", { class: "facts-list" },
    page.signals.map(({ name, measured }) => h("div", {}, h("dt", {}, words(name)), h("dd", { class: "numbers" }, measure(measured))))));
}
