// The page as delivered, with boxes over it. Boxes are in the page's own pixels, whatever size the picture has.

import { ask, Problem } from "./api.js";
import { h, replaced, svg } from "./dom.js";
import { KINDS, share } from "./format.js";
import { problemNotice } from "./notices.js";

const ZOOM_STEP = 1.25;
const ZOOM_LEAST = 0.5;
const ZOOM_MOST = 6;
const WIDTHS_PX = [800, 1600, 2400];
const SHOWN_FIRST = ["line", "table", "stamp", "handwriting", "figure", "uncovered_ink"];

export class PagePicture {
  constructor({ onLine, onPick }) {
    this.onLine = onLine;
    this.onPick = onPick;
    this.zoom = 1;
    this.shown = new Set(SHOWN_FIRST);
    this.layers = {};
    this.image = h("img", { alt: "" });
    this.boxes = svg("svg", { class: "boxes", "aria-hidden": "true", preserveAspectRatio: "none" });
    this.sheet = h("div", { class: "sheet" }, this.image, this.boxes);
    this.problem = h("div", {});
    this.scroller = h("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": "Picture of the page" }, this.problem, this.sheet);
    this.level = h("output", { class: "numbers", "aria-label": "Zoom" }, "100 %");
    this.legend = h("div", { class: "legend", role: "group", "aria-label": "Boxes shown" });
    this.hint = h("div", { class: "hint", hidden: true });
    this.element = h("section", { class: "picture", "aria-label": "Picture" }, this.toolbar(), this.legend, this.scroller, this.hint);
    this.boxes.addEventListener("pointermove", (event) => this.pointed(event));
    this.boxes.addEventListener("pointerleave", () => this.left());
    this.boxes.addEventListener("click", (event) => this.picked(event));
    this.sheet.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
  }

  toolbar() {
    const button = (label, text, act) => h("button", { type: "button", class: "quiet-button", "aria-label": label, title: label, on: { click: act } }, text);
    return h("div", { class: "row toolbar" },
      button("Smaller (-)", "−", () => this.zoomed(1 / ZOOM_STEP)), this.level,
      button("Larger (+)", "+", () => this.zoomed(ZOOM_STEP)),
      button("Fit (0)", "Fit", () => this.fitted()));
  }

  async show(page, path, name, signal) {
    this.page = page;
    this.path = path;
    this.signal = signal;
    this.width = 0;
    this.problem.replaceChildren();
    this.draw();
    this.image.alt = `Page ${page.page_number} of ${name}`;
    this.image.removeAttribute("src");
    this.sheet.classList.add("drawing");
    this.scroller.scrollTop = 0;
    await this.fetchPicture();
  }

  // A sharper one when the page is seen larger.
  async fetchPicture() {
    const wanted = this.scroller.clientWidth * this.zoom * (devicePixelRatio || 1);
    const width = WIDTHS_PX.find((one) => one >= wanted * 0.9) ?? WIDTHS_PX.at(-1);
    if (width <= this.width) return;
    const { path, signal } = this;
    this.width = width;
    this.sheet.hidden = false;
    try {
      const response = await ask(`${path}/image?width_px=${width}`, { signal, headers: { Accept: "image/jpeg" } });
      const address = URL.createObjectURL(await response.blob());
      if (signal.aborted || path !== this.path) {
        URL.revokeObjectURL(address);
        return;
      }
      this.image.onload = () => {
        URL.revokeObjectURL(address);
        this.sheet.classList.remove("drawing");
      };
      this.image.src = address;
    } catch (error) {
      if (error.name === "AbortError" || path !== this.path) return;
      this.width = 0;
      this.sheet.classList.remove("drawing");
      this.sheet.hidden = !this.image.hasAttribute("src") && this.boxes.hasAttribute("hidden");
      const problem = error instanceof Problem ? error : new Problem({ detail: "the picture could not be shown" });
      replaced(this.problem, problemNotice(problem, () => { this.problem.replaceChildren(); this.fetchPicture(); }));
    }
  }

  draw() {
    const { page } = this;
    const isKnown = Boolean(page.width_px && page.height_px);
    this.boxes.toggleAttribute("hidden", !isKnown);
    if (isKnown) {
      this.boxes.setAttribute("viewBox", `0 0 ${page.width_px} ${page.height_px}`);
      this.sheet.style.setProperty("aspect-ratio", `${page.width_px} / ${page.height_px}`);
    } else {
      this.sheet.style.removeProperty("aspect-ratio");
    }
    this.kinds = boxesByKind(page);
    this.layers = {};
    this.boxes.replaceChildren();
    for (const kind of Object.keys(KINDS)) {
      if (!this.kinds[kind]?.length) continue;
      this.layers[kind] = svg("g", { class: `layer k-${kind}` });
      this.boxes.append(this.layers[kind]);
      this.fillLayer(kind);
    }
    this.pointer = svg("rect", { class: "pointed", visibility: "hidden" });
    this.marked = svg("rect", { class: "marked", visibility: "hidden" });
    this.boxes.append(this.marked, this.pointer);
    this.drawLegend();
  }

  fillLayer(kind) {
    const isShown = this.shown.has(kind);
    this.layers[kind].setAttribute("visibility", isShown ? "visible" : "hidden");
    if (isShown && this.layers[kind].childElementCount === 0) {
      this.layers[kind].append(...this.kinds[kind].map(({ box }) => svg("rect", sides(box))));
    }
  }

  drawLegend() {
    replaced(this.legend, Object.keys(KINDS).filter((kind) => this.layers[kind]).map((kind) => h("button", {
      type: "button", class: `legend-key k-${kind}`, "aria-pressed": String(this.shown.has(kind)), data: { kind },
      on: { click: (event) => this.toggle(kind, event.currentTarget) },
    }, h("span", { class: "swatch", "aria-hidden": "true" }), `${KINDS[kind]} `, h("span", { class: "numbers" }, String(this.kinds[kind].length)))));
  }

  toggle(kind, button) {
    if (this.shown.has(kind)) this.shown.delete(kind);
    else this.shown.add(kind);
    button.setAttribute("aria-pressed", String(this.shown.has(kind)));
    this.fillLayer(kind);
  }

  zoomed(factor) {
    this.setZoom(this.zoom * factor);
  }

  fitted() {
    this.setZoom(1);
  }

  setZoom(zoom) {
    const middle = (this.scroller.scrollTop + this.scroller.clientHeight / 2) / (this.scroller.scrollHeight || 1);
    this.zoom = Math.min(ZOOM_MOST, Math.max(ZOOM_LEAST, zoom));
    this.sheet.style.setProperty("inline-size", `${this.zoom * 100}%`);
    this.level.textContent = share(this.zoom);
    this.scroller.scrollTop = middle * this.scroller.scrollHeight - this.scroller.clientHeight / 2;
    if (this.page) this.fetchPicture();
  }

  wheeled(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoomed(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP);
  }

  at(event) {
    const frame = this.boxes.getBoundingClientRect();
    const x = ((event.clientX - frame.left) / frame.width) * this.page.width_px;
    const y = ((event.clientY - frame.top) / frame.height) * this.page.height_px;
    const within = ({ box }) => box && x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3];
    const word = this.kinds.word?.find(within) ?? null;
    const line = word ? word.line : this.kinds.line?.find(within)?.line ?? null;
    const region = Object.keys(KINDS).filter((kind) => kind !== "line" && kind !== "word" && this.shown.has(kind))
      .flatMap((kind) => this.kinds[kind] ?? []).filter(within).sort((a, b) => area(a.box) - area(b.box))[0] ?? null;
    return { word, line, region };
  }

  pointed(event) {
    const { word, line, region } = this.at(event);
    place(this.pointer, word?.box ?? region?.box ?? null);
    this.onLine(line);
    const text = word ? `${word.text} · ${word.confidence === null ? "no confidence" : share(word.confidence)}` : region?.label ?? null;
    this.hint.hidden = text === null;
    if (text === null) return;
    this.hint.textContent = text;
    const frame = this.element.getBoundingClientRect();
    this.hint.style.setProperty("inset-inline-start", `${Math.min(event.clientX - frame.left + 12, frame.width - 200)}px`);
    this.hint.style.setProperty("inset-block-start", `${event.clientY - frame.top + 18}px`);
  }

  left() {
    place(this.pointer, null);
    this.hint.hidden = true;
    this.onLine(null);
  }

  picked(event) {
    const { line } = this.at(event);
    if (line !== null) this.onPick(line);
  }

  mark(box, { isScrolled = false } = {}) {
    if (!this.marked) return;
    place(this.marked, box);
    if (!box || !isScrolled) return;
    const height = this.sheet.clientHeight;
    const middle = ((box[1] + box[3]) / 2 / this.page.height_px) * height;
    const { scrollTop, clientHeight } = this.scroller;
    if (middle < scrollTop + 24 || middle > scrollTop + clientHeight - 24) this.scroller.scrollTop = middle - clientHeight / 2;
  }
}

function boxesByKind(page) {
  const kinds = { line: [], word: [] };
  (page.lines ?? []).forEach((one, line) => {
    kinds.line.push({ box: one.box, line });
    for (const word of one.words ?? []) kinds.word.push({ ...word, line });
  });
  for (const { kind, box, confidence } of page.regions ?? []) {
    const label = `${kind.replaceAll("_", " ")}${confidence === null || confidence === undefined ? "" : ` · ${share(confidence)}`}`;
    (kinds[kind] ??= []).push({ box, label });
  }
  if (!kinds.table) {
    const boxed = (page.tables ?? []).filter(({ box }) => box);
    if (boxed.length > 0) kinds.table = boxed.map(({ box }) => ({ box, label: "table" }));
  }
  return kinds;
}

const area = ([left, top, right, bottom]) => (right - left) * (bottom - top);

function sides([left, top, right, bottom]) {
  return { x: left, y: top, width: Math.max(1, right - left), height: Math.max(1, bottom - top) };
}

function place(rect, box) {
  rect.setAttribute("visibility", box ? "visible" : "hidden");
  if (box) for (const [name, value] of Object.entries(sides(box))) rect.setAttribute(name, value);
}
