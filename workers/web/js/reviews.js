// Pages that a person is to look at, and what was said of them.

import { json, saved } from "./api.js";
import { h, replaced, say } from "./dom.js";
import { count, plural, share } from "./format.js";
import { noticeIn } from "./notices.js";
import { reasonChip, routeChip } from "./parts.js";

const PAGE = 30;
const SHOWN = { escalated: "Escalated", accepted: "Accepted", all: "All" };

export async function show(main, { signal, query }) {
  const shown = SHOWN[query.get("show")] ? query.get("show") : "escalated";
  const reviewed = query.get("reviewed") === "true";
  const list = new ReviewList({ shown, reviewed, signal });
  const first = await list.load();
  if (signal.aborted) return;
  const place = h("div", {});
  const { pages, reviewed: done } = first.progress;
  const next = h("button", { type: "button", class: "strong", on: { click: () => goToNext(shown, place) } }, "Review the next page");
  replaced(
    main,
    h("div", { class: "row between" }, h("h1", {}, "Reviews"),
      h("button", { type: "button", class: "quiet-button", on: { click: () => saved("/v1/reviews/labels", "MANIFEST.jsonl").catch(noticeIn(place)) } }, "Download labels")),
    h("p", { class: "lead" }, "Say where triage was right. What you say becomes labels, and ", h("code", {}, "doctriage calibrate"), " fits the policy to them."),
    h("section", { class: "card row between", "aria-label": "Progress" },
      h("div", { class: "grow" }, h("p", { class: "figure" }, `${count(done)} of ${plural(pages, "page")}`, h("span", { class: "quiet" }, pages ? ` reviewed by you · ${share(done / pages)}` : " to review")),
        h("progress", { max: Math.max(1, pages), value: done, "aria-label": "Pages that you reviewed" })),
      done < pages && next),
    place,
    h("div", { class: "row filters" },
      choices("Pages", Object.entries(SHOWN).map(([name, label]) => [label, `#/reviews?show=${name}&reviewed=${reviewed}`, name === shown])),
      choices("Reviewed", [["To review", `#/reviews?show=${shown}&reviewed=false`, !reviewed], ["Reviewed by you", `#/reviews?show=${shown}&reviewed=true`, reviewed]])),
    list.element, list.more,
  );
  list.fill(first);
}

function choices(label, options) {
  return h("nav", { class: "choices", "aria-label": label }, options.map(([text, href, isChosen]) => h("a", { href, "aria-current": isChosen ? "true" : null }, text)));
}

// Where the next one is, as a hash: the first after this page, or else the first of all.
export async function nextToReview(shown, { id, page } = {}) {
  const asked = { show: shown, reviewed: "false", limit: "2" };
  const after = id === undefined ? {} : { after_document: id, after_page: String(page) };
  for (const query of [{ ...asked, ...after }, asked]) {
    const { pages } = await json(`/v1/reviews?${new URLSearchParams(query)}`);
    const found = pages.find((one) => one.id !== id || one.page_number !== page);
    if (found) return hashOf(found, shown);
  }
  return null;
}

async function goToNext(shown, place) {
  try {
    const next = await nextToReview(shown);
    if (next) location.hash = next;
    else say("all of these pages are reviewed");
  } catch (error) {
    noticeIn(place)(error);
  }
}

const hashOf = (page, shown) => `#/documents/${encodeURIComponent(page.id)}/pages/${page.page_number}?review=${shown}`;

class ReviewList {
  constructor({ shown, reviewed, signal }) {
    Object.assign(this, { shown, reviewed, signal, cursor: null });
    this.element = h("ul", { class: "documents" });
    this.more = h("button", { type: "button", hidden: true, on: { click: () => this.loadMore() } }, "Show more");
  }

  load(cursor = "") {
    const query = new URLSearchParams({ show: this.shown, reviewed: String(this.reviewed), limit: PAGE, ...(cursor ? { cursor } : {}) });
    return json(`/v1/reviews?${query}`, { signal: this.signal });
  }

  fill({ pages, next_cursor: next }) {
    this.cursor = next;
    this.more.hidden = !next;
    if (pages.length === 0 && this.element.childElementCount === 0) {
      this.element.append(h("li", { class: "empty" }, this.reviewed ? "You have reviewed none of these pages yet." : "There is nothing left to review here."));
    }
    this.element.append(...pages.map((page) => this.row(page)));
  }

  row(page) {
    return h("li", { class: "document review-row" },
      h("a", { class: "name", href: hashOf(page, this.shown) }, page.name, h("span", { class: "quiet" }, ` page ${page.page_number}`)),
      h("div", { class: "row state" }, routeChip(page.route),
        page.review && h("span", { class: `chip ${page.review.needs_vlm === page.escalate ? "good" : "bad"}` }, page.review.needs_vlm === page.escalate ? "approved" : "overruled")),
      h("div", { class: "row facts" }, h("span", {}, page.cost_centre)),
      page.reasons.length > 0 && h("ul", { class: "chips", "aria-label": "Why the VLM would help" }, page.reasons.map(reasonChip)));
  }

  async loadMore() {
    const from = this.element.childElementCount;
    this.fill(await this.load(this.cursor));
    this.element.children[from]?.querySelector("a").focus();
  }
}
