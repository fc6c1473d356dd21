// One document: its pages, one of them with its picture and what was read on it.

import { followEvents, json } from "./api.js";
import { h, replaced, say } from "./dom.js";
import { bytes, count, instant, money, plural, ROUTES } from "./format.js";
import { confirmed, noticeIn, problemNotice, sentence } from "./notices.js";
import { PagePicture } from "./page_picture.js";
import { PageText } from "./page_text.js";
import { downloadMenu, failureOf, isOpen, pageProgress, reasonChip, routeChip, routeChips, stateChip } from "./parts.js";
import { ReviewForm } from "./review_form.js";
import { nextToReview } from "./reviews.js";
import { onKeys, showKeys } from "./shortcuts.js";

const PAGES_AT_A_TIME = 200;
const PAGES_IN_STRIP = 2_000;
let kept = null;

export async function show(main, { signal, parts: [id, number], query, staysAt }) {
  if (!staysAt || kept?.id !== id || !main.contains(kept.element)) {
    kept = new DocumentView(id);
    await kept.load(signal);
    if (signal.aborted) return;
    replaced(main, kept.element);
  }
  kept.goOn(signal, query);
  await kept.showPage(number ? Number(number) : kept.firstPage());
}

function attemptsOf(total) {
  const tokens = `${count(total.prompt_tokens)} prompt and ${count(total.completion_tokens)} completion tokens`;
  return `${plural(total.cpu_attempts, "page")} read on the CPU, ${plural(total.vlm_calls, "call")} to the VLM, ${tokens}; ${count(total.avoided_tokens)} tokens avoided`;
}

class DocumentView {
  constructor(id) {
    this.id = id;
    this.path = `/v1/documents/${encodeURIComponent(id)}`;
    this.pages = new Map();
    this.links = new Map();
    this.place = h("div", {});
    this.state = h("div", { class: "row state", id: "document-state" });
    this.cost = h("span", { class: "quiet", id: "document-cost" });
    this.actions = h("div", { class: "row actions" });
    this.strip = h("ol", {});
    this.verdict = h("div", { class: "page-verdict" });
    this.picture = new PagePicture({ onLine: (line) => this.text.mark(line), onPick: (line) => this.text.focusLine(line) });
    this.text = new PageText({ onLine: (line, isScrolled) => this.picture.mark(line === null ? null : this.page.lines[line].box, { isScrolled }), onBox: (box) => this.picture.mark(box, { isScrolled: true }) });
    this.review = new ReviewForm({ onSaved: () => this.reviewed() });
    this.onwards = h("div", { class: "row onwards" });
  }

  async load(signal) {
    this.one = await json(this.path, { signal });
    await this.loadPages(signal);
    await this.loadCost(signal);
    this.title = h("h1", {}, this.one.name);
    this.body = h("div", { class: "page-view" }, this.picture.element, h("div", { class: "page-side" }, this.verdict, this.text.element, this.review.element, this.onwards));
    this.element = h("div", { class: "document-view" },
      h("div", { class: "row between head" }, h("div", {}, this.title, this.state), this.actions), this.place,
      h("nav", { class: "strip", "aria-label": "Pages" }, this.strip), this.body);
    this.showState();
    this.showStrip();
  }

  // What it has cost so far; a line for each currency.
  async loadCost(signal) {
    const { totals } = await json(`${this.path}/cost`, { signal });
    replaced(this.cost, totals.map((total) => h("span", { title: attemptsOf(total) }, money(total.cost, total.currency))));
  }

  async loadPages(signal) {
    let after = 0;
    do {
      const { pages, next_after: next } = await json(`${this.path}/pages?limit=${PAGES_AT_A_TIME}&after=${after}`, { signal });
      for (const page of pages) this.pages.set(page.page_number, page);
      after = next;
    } while (after && this.pages.size < PAGES_IN_STRIP);
  }

  goOn(signal, query) {
    this.signal = signal;
    this.query = query;
    onKeys(this.keys(), signal);
    if (isOpen(this.one)) this.follow();
  }

  keys() {
    const keys = [
      { on: ["j"], label: "next page", act: () => this.step(1) }, { on: ["k"], label: "previous page", act: () => this.step(-1) },
      { on: ["+", "="], label: "larger", act: () => this.picture.zoomed(1.25) }, { on: ["-"], label: "smaller", act: () => this.picture.zoomed(0.8) },
      { on: ["0"], label: "fit to the width", act: () => this.picture.fitted() },
      { on: ["a"], label: "approve what triage says", act: () => this.review.approve() }, { on: ["o"], label: "overrule it", act: () => this.review.overrule() },
      { on: ["n"], label: "next page to review", act: () => this.goToNext() },
    ];
    return keys;
  }

  async follow() {
    const { signal } = this;
    try {
      await followEvents(`${this.path}/events`, (name, content) => this.came(name, content), signal);
      if (signal.aborted) return;
      this.one = await json(this.path, { signal });
      await this.loadPages(signal);
      await this.loadCost(signal);
      this.showState();
      this.showStrip();
      say(`${this.one.name}: ${this.one.state}`);
      await this.showPage(this.number ?? this.firstPage());
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }

  came(name, content) {
    if (name === "document") {
      this.one = content;
      this.showState();
      if (content.page_count && this.pages.size === 0) this.loadPages(this.signal).then(() => this.showStrip(), () => null);
    } else if (name === "page") {
      const before = this.pages.get(content.page_number);
      this.pages.set(content.page_number, { ...before, ...content });
      this.count();
      this.showStrip([content.page_number]);
      const isNews = before?.state !== content.state || before?.route !== content.route;
      if (isNews && (this.number === undefined || this.number === content.page_number)) this.showPage(content.page_number);
    }
  }

  // A page's event comes without its document's.
  count() {
    const states = [...this.pages.values()].map(({ state }) => state);
    const settled = { done: states.filter((one) => one === "done").length, failed: states.filter((one) => one === "failed").length };
    this.one = { ...this.one, pages: { ...this.one.pages, ...settled } };
    this.showState();
  }

  showState() {
    const { one } = this;
    replaced(this.state, stateChip(one.state), pageProgress(one), routeChips(one.routes),
      h("span", { class: "quiet" }, [one.cost_centre, bytes(one.byte_count), instant(one.created_at)].join(" · ")), this.cost);
    const kind = `${isOpen(one)} ${one.state}`;
    if (this.actionsFor !== kind) {
      this.actionsFor = kind;
      replaced(this.actions,
        one.state === "finished" && downloadMenu(one, this.place),
        h("button", { type: "button", class: "quiet-button", on: { click: () => this.end() } }, isOpen(one) ? "Cancel" : "Erase"),
        h("button", { type: "button", class: "quiet-button", "aria-label": "Keys", title: "Keys (?)", on: { click: () => showKeys(this.keys()) } }, "?"));
    }
    if (one.error) replaced(this.place, h("div", { class: "notice bad" }, h("p", {}, h("strong", {}, sentence(failureOf(one)))), h("p", { class: "quiet" }, one.error.code)));
  }

  async end() {
    const wasOpen = isOpen(this.one);
    const isSure = await (wasOpen
      ? confirmed("Cancel this document?", { consequence: "Pages that are read already have been paid for. The rest is not read.", action: "Cancel it" })
      : confirmed("Erase this document?", { consequence: "The document, its text and its reviews are erased everywhere, for good. What was paid stays on the ledger.", action: "Erase it" }));
    if (!isSure) return;
    try {
      await json(`${this.path}${wasOpen ? "" : "?erase=true"}`, { method: "DELETE" });
      say(wasOpen ? "cancelled" : "erased");
      if (wasOpen) this.one = await json(this.path);
      else location.hash = "#/documents";
      this.showState();
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }

  firstPage() {
    return this.numbers()[0];
  }

  showStrip(changed = this.numbers()) {
    for (const number of changed) {
      const page = this.pages.get(number);
      const link = this.links.get(number) ?? this.newLink(number);
      const route = page.state === "done" ? page.route : page.state;
      link.className = `page-key route-${route}`;
      link.setAttribute("aria-label", `Page ${number}, ${ROUTES[route] ?? String(route).replaceAll("_", " ")}`);
    }
    this.strip.parentElement.hidden = this.links.size < 2;
  }

  newLink(number) {
    const link = h("a", { href: this.hashOf(number), data: { page: number } }, String(number));
    const next = [...this.links.keys()].filter((one) => one > number).sort((a, b) => a - b)[0];
    this.strip.insertBefore(h("li", {}, link), this.links.get(next)?.parentElement ?? null);
    this.links.set(number, link);
    return link;
  }

  numbers() {
    return [...this.pages.keys()].sort((a, b) => a - b);
  }

  hashOf(number) {
    const query = this.query?.toString();
    return `#/documents/${encodeURIComponent(this.id)}/pages/${number}${query ? `?${query}` : ""}`;
  }

  step(by) {
    const numbers = this.numbers();
    const to = numbers[numbers.indexOf(this.number) + by];
    if (to !== undefined) location.hash = this.hashOf(to);
  }

  async showPage(number) {
    this.number = number;
    for (const [place, link] of this.links) {
      const isThis = place === number;
      if (isThis) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      link.href = this.hashOf(place);
      if (isThis) link.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    const known = this.pages.get(number);
    this.body.hidden = known === undefined || !["done", "failed"].includes(known.state);
    if (this.body.hidden) {
      this.waiting ??= h("p", { class: "empty" });
      this.waiting.textContent = known === undefined ? (isOpen(this.one) ? "The document is being opened." : "There is no page to show.") : "This page is still being read.";
      this.body.before(this.waiting);
      return;
    }
    this.waiting?.remove();
    const path = `${this.path}/pages/${number}`;
    const { signal } = this;
    this.page = await json(path, { signal });
    if (signal.aborted || this.number !== number) return;
    say(`page ${number} of ${count(this.one.page_count)}`);
    this.showVerdict();
    this.text.show(this.page, path, signal);
    this.review.show(this.page, path, signal);
    this.showOnwards();
    this.picture.show(this.page, path, this.one.name, signal);
  }

  showVerdict() {
    const { page } = this;
    const reasons = page.triage?.reasons ?? [];
    replaced(this.verdict,
      h("div", { class: "row" }, h("h2", {}, `Page ${page.page_number}`), page.route && routeChip(page.route)),
      page.error && problemNotice({ message: page.error.message, advice: `code: ${page.error.code}` }),
      page.degraded && h("div", { class: "notice warn" }, h("p", {}, h("strong", {}, "This page needs the VLM and went without.")), h("p", {}, sentence(page.degraded.message), " ", h("code", {}, page.degraded.code))),
      reasons.length > 0 && h("ul", { class: "chips", "aria-label": "Why the VLM would help" }, reasons.map(reasonChip)));
  }

  showOnwards() {
    const shown = this.query.get("review");
    replaced(this.onwards, shown && h("button", { type: "button", class: "strong", on: { click: () => this.goToNext() } }, "Next page to review", h("kbd", { "aria-hidden": "true" }, "n")),
      shown && h("a", { href: `#/reviews?show=${encodeURIComponent(shown)}` }, "All pages to review"));
  }

  reviewed() {
    if (this.query.get("review")) this.onwards.querySelector("button")?.focus();
  }

  async goToNext() {
    const shown = this.query.get("review") ?? "escalated";
    try {
      const next = await nextToReview(shown, { id: this.id, page: this.number });
      if (next) location.hash = next;
      else replaced(this.onwards, h("p", {}, "All of these pages are reviewed."), h("a", { href: "#/reviews" }, "See them"));
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }
}
