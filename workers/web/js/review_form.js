// A person's word on the decision about a page.

import { json } from "./api.js";
import { h, replaced, say } from "./dom.js";
import { instant, words } from "./format.js";
import { noticeIn } from "./notices.js";

const CLASSES = [
  "table", "handwriting", "stamp", "form_typed", "receipt", "multi_column", "low_quality", "photo", "rotated",
  "non_latin", "historic_print", "clean_print", "born_digital", "bad_text_layer", "blank",
];

export class ReviewForm {
  constructor({ onSaved }) {
    this.onSaved = onSaved;
    this.place = h("div", {});
    this.element = h("section", { class: "review card", "aria-labelledby": "review-title" });
  }

  async show(page, path, signal) {
    Object.assign(this, { page, path: `${path}/review`, signal, own: null });
    this.element.hidden = page.state !== "done";
    if (this.element.hidden) return;
    this.fill([]);
    try {
      const { review, others } = await json(this.path, { signal });
      if (signal.aborted || this.path !== `${path}/review`) return;
      this.own = review;
      this.fill(others);
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }

  fill(others) {
    const says = this.page.triage?.escalate;
    this.others = others;
    this.remark = h("textarea", { id: "remark", rows: 2, maxlength: 2000 }, this.own?.remark ?? "");
    this.verdicts = h("div", { class: "row verdicts" },
      this.verdictButton("Approve", "a", says), this.verdictButton("Overrule", "o", !says),
      h("button", { type: "button", class: "plain", hidden: !this.own, on: { click: () => this.withdraw() } }, "Take back"));
    this.classes = h("div", { class: "checks" }, CLASSES.map((name) => h("label", {}, h("input", { type: "checkbox", value: name, checked: this.own?.classes.includes(name) ?? false }), words(name))));
    replaced(this.element,
      h("h2", { id: "review-title" }, "Review"),
      isForcedAlone(this.page.triage)
        ? h("p", {}, "The route that was asked for sent this page to the VLM, and ", h("strong", {}, "nothing that triage measured"), " did.")
        : h("p", {}, "Triage says that this page ", h("strong", {}, says ? "needs the VLM" : "does not need the VLM"), "."),
      this.verdicts,
      h("details", { class: "options", open: Boolean(this.own?.classes.length || this.own?.remark) }, h("summary", {}, "What kind of page, and why"),
        h("fieldset", {}, h("legend", {}, "Classes"), this.classes),
        h("div", { class: "field" }, h("label", { for: "remark" }, "Remark"), this.remark)),
      this.own && h("p", { class: "quiet" }, `You said ${sayingOf(this.own)} on ${instant(this.own.reviewed_at)}.`),
      others.map((one) => h("p", { class: "quiet" }, `${one.reviewer} said ${sayingOf(one)} on ${instant(one.reviewed_at)}${one.remark ? `: ${one.remark}` : "."}`)),
      this.place);
  }

  verdictButton(label, key, needsVlm) {
    const isOwn = this.own?.needs_vlm === needsVlm;
    return h("button", { type: "button", class: `verdict ${label.toLowerCase()}`, "aria-pressed": String(isOwn), "aria-keyshortcuts": key, on: { click: () => this.save(needsVlm, label) } },
      label, h("kbd", { "aria-hidden": "true" }, key), h("span", { class: "quiet" }, needsVlm ? "needs the VLM" : "OCR is enough"));
  }

  approve() {
    if (!this.element.hidden) this.save(this.page.triage.escalate, "Approve");
  }

  overrule() {
    if (!this.element.hidden) this.save(!this.page.triage.escalate, "Overrule");
  }

  async save(needsVlm, label) {
    const { path, signal } = this;
    const remark = this.remark.value.trim();
    const classes = [...this.classes.querySelectorAll("input:checked")].map((box) => box.value);
    try {
      const review = await json(path, { method: "PUT", send: { needs_vlm: needsVlm, classes, remark: remark || null }, signal });
      if (this.path !== path) return;
      const hadFocus = this.element.contains(document.activeElement);
      this.own = review;
      this.fill(this.others);
      say(`page ${this.page.page_number}: ${label === "Approve" ? "approved" : "overruled"}`);
      if (hadFocus) this.verdicts.querySelector("[aria-pressed=true]")?.focus();
      this.onSaved();
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }

  async withdraw() {
    try {
      await json(this.path, { method: "DELETE", signal: this.signal });
      this.own = null;
      this.fill(this.others);
      say("your review is taken back");
      this.verdicts.querySelector("button").focus();
    } catch (error) {
      noticeIn(this.place)(error);
    }
  }
}

const isForcedAlone = (triage) => triage?.reasons.length > 0 && triage.reasons.every(({ signal }) => signal === "forced_vlm");

const sayingOf = (review) => `that it ${review.needs_vlm ? "needs the VLM" : "does not need the VLM"}${review.classes.length > 0 ? ` (${review.classes.map(words).join(", ")})` : ""}`;
