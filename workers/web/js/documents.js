// What was sent, the newest first, as it goes on.

import { followEvents, json, paused } from "./api.js";
import { h, replaced, say } from "./dom.js";
import { bytes, instant } from "./format.js";
import { confirmed, noticeIn, problemNotice } from "./notices.js";
import { downloadMenu, failureOf, isOpen, pageProgress, routeChips, stateChip } from "./parts.js";
import { uploadCard } from "./upload.js";

const PAGE = 30;
const FOLLOWED = 3; // a browser has six connections to a server, and others are needed
const LOOKED_AT_SOON_MS = 700;
const LOOKED_AT_EVERY_MS = 4_000;
const LOOKS_FOR_NEW_ONES = 4;
const STATES = ["queued", "reading", "finished", "failed", "cancelled"];

export async function show(main, { me, signal }) {
  const list = new DocumentList(signal);
  const first = await list.load();
  if (signal.aborted) return;
  replaced(
    main,
    h("h1", {}, "Documents"),
    uploadCard(me, { onSent: (made) => list.sent(made), signal }),
    h("section", { "aria-labelledby": "list-title" },
      h("div", { class: "row between" }, h("h2", { id: "list-title" }, "Sent"), list.filters()),
      list.place, list.element, list.more),
  );
  list.fill(first);
  list.lookAgain();
}

class DocumentList {
  constructor(signal) {
    this.signal = signal;
    this.rows = new Map();
    this.followed = new Map();
    this.cursor = null;
    this.wanted = { state: "", name: "" };
    this.element = h("ul", { class: "documents" });
    this.place = h("div", {});
    this.more = h("button", { type: "button", hidden: true, on: { click: () => this.loadMore() } }, "Show more");
  }

  filters() {
    const state = h("select", { "aria-label": "State", on: { change: () => this.filter({ state: state.value }) } },
      h("option", { value: "" }, "all states"), STATES.map((one) => h("option", { value: one }, one)));
    let timer;
    const name = h("input", { type: "search", placeholder: "Name", "aria-label": "Part of the name", on: { input: () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.filter({ name: name.value.trim() }), 250);
    } } });
    return h("div", { class: "row filters", role: "search" }, name, state);
  }

  load(cursor = null) {
    const query = new URLSearchParams({ limit: PAGE });
    for (const [name, value] of Object.entries({ ...this.wanted, cursor: cursor ?? "" })) if (value) query.set(name, value);
    return json(`/v1/documents?${query}`, { signal: this.signal });
  }

  async filter(change) {
    this.wanted = { ...this.wanted, ...change };
    try {
      this.fill(await this.load());
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }

  async loadMore() {
    const from = this.rows.size;
    try {
      const { documents, next_cursor: next } = await this.load(this.cursor);
      for (const one of documents) this.put(one);
      this.goesOn(next);
      [...this.element.children][from]?.querySelector("a")?.focus();
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }

  fill({ documents, next_cursor: next }) {
    this.place.replaceChildren();
    this.element.replaceChildren();
    this.rows.clear();
    for (const one of documents) this.put(one);
    this.goesOn(next);
    this.sayIfEmpty();
  }

  sayIfEmpty() {
    const isFiltered = this.wanted.state || this.wanted.name;
    if (this.rows.size === 0) replaced(this.element, h("li", { class: "empty" }, isFiltered ? "No document is like that." : "Nothing was sent yet. Choose a file above, and see it read."));
  }

  goesOn(cursor) {
    this.cursor = cursor;
    this.more.hidden = !cursor;
  }

  sent(one, { isSaid = true } = {}) {
    if (isSaid) say(`${one.name} has arrived`);
    if (this.rows.size === 0) this.element.replaceChildren();
    this.put(one, true);
  }

  put(one, isFirst = false) {
    const known = this.rows.get(one.id);
    if (known) {
      known.update(one);
    } else {
      const row = new DocumentRow(one, this.signal);
      this.rows.set(one.id, row);
      if (isFirst) this.element.prepend(row.element);
      else this.element.append(row.element);
    }
    this.followSome();
  }

  // Others send documents too.
  async lookForNew() {
    if (this.wanted.state || this.wanted.name || this.signal.aborted) return;
    const { documents } = await this.load();
    for (const one of documents.reverse()) if (!this.rows.has(one.id) && !this.isOlder(one)) this.sent(one, { isSaid: false });
  }

  isOlder(one) {
    return [...this.rows.values()].some((row) => row.one.created_at > one.created_at);
  }

  // Some by their events; the others are looked at now and then.
  followSome() {
    for (const [id, row] of this.rows) {
      if (this.followed.size >= FOLLOWED) return;
      if (isOpen(row.one) && !this.followed.has(id)) this.follow(id);
    }
  }

  async follow(id) {
    const ending = new AbortController();
    this.followed.set(id, ending);
    this.signal.addEventListener("abort", () => ending.abort());
    try {
      await followEvents(`/v1/documents/${encodeURIComponent(id)}/events`, (name, content) => {
        if (name === "document") this.rows.get(id)?.update(content);
        else if (name === "page") this.lookSoon(id);
      }, ending.signal);
      await this.lookAt(id);
    } catch {
      // it is looked at now and then
    } finally {
      this.followed.delete(id);
      if (!this.signal.aborted) this.followSome();
    }
  }

  // Pages may come in dozens a second.
  lookSoon(id) {
    const row = this.rows.get(id);
    if (!row || row.isDue) return;
    row.isDue = true;
    paused(LOOKED_AT_SOON_MS, this.signal).then(() => {
      row.isDue = false;
      if (!this.signal.aborted && isOpen(row.one)) this.lookAt(id).catch(() => null);
    });
  }

  async lookAt(id) {
    const one = await json(`/v1/documents/${encodeURIComponent(id)}`, { signal: this.signal });
    const row = this.rows.get(id);
    if (row && isOpen(row.one) && !isOpen(one)) say(`${one.name}: ${one.state}`);
    row?.update(one);
  }

  async lookAgain() {
    for (let look = 1; !this.signal.aborted; look += 1) {
      await paused(LOOKED_AT_EVERY_MS, this.signal);
      if (look % LOOKS_FOR_NEW_ONES === 0) await this.lookForNew().catch(() => null);
      const open = [...this.rows].filter(([id, row]) => isOpen(row.one) && !this.followed.has(id)).map(([id]) => id);
      for (const id of open.slice(0, PAGE)) {
        if (this.signal.aborted) return;
        await this.lookAt(id).catch(() => null);
      }
    }
  }
}

class DocumentRow {
  constructor(one, signal) {
    this.signal = signal;
    this.place = h("div", {});
    this.state = h("div", { class: "row state" });
    this.facts = h("div", { class: "row facts" });
    this.actions = h("div", { class: "row actions" });
    this.element = h("li", { class: "document", data: { id: one.id } },
      h("a", { class: "name", href: `#/documents/${encodeURIComponent(one.id)}` }, one.name),
      this.state, this.facts, this.actions, this.place);
    this.update(one);
  }

  update(one) {
    const before = this.one;
    this.one = one;
    replaced(this.state, stateChip(one.state), pageProgress(one), routeChips(one.routes));
    if (one.error) this.state.append(h("span", { class: "error-text" }, failureOf(one)));
    replaced(this.facts, h("span", {}, one.cost_centre), h("span", {}, bytes(one.byte_count)), h("time", { datetime: one.created_at }, instant(one.created_at)));
    if (before && isOpen(before) === isOpen(one)) return;
    const hadFocus = this.actions.contains(document.activeElement);
    replaced(this.actions, isOpen(one)
      ? h("button", { type: "button", class: "quiet-button", "aria-label": `Cancel ${one.name}`, on: { click: () => this.cancel() } }, "Cancel")
      : one.state === "finished" && downloadMenu(one, this.place));
    if (hadFocus) this.element.querySelector("a").focus();
  }

  async cancel() {
    const isSure = await confirmed(`Cancel ${this.one.name}?`, { consequence: "Pages that are read already have been paid for. The rest is not read.", action: "Cancel it" });
    if (!isSure) return;
    try {
      await json(`/v1/documents/${encodeURIComponent(this.one.id)}`, { method: "DELETE" });
      this.update(await json(`/v1/documents/${encodeURIComponent(this.one.id)}`));
    } catch (error) {
      replaced(this.place, problemNotice(error));
    }
  }
}
