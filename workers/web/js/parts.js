// Pieces that several views are made of.

import { Problem, saved } from "./api.js";
import { h, replaced, say } from "./dom.js";
import { count, measure, plural, ROUTES, words } from "./format.js";
import { noticeIn } from "./notices.js";

export const FORMATS = [
  ["markdown", "Markdown"], ["json", "JSON"], ["text", "Text"], ["html", "HTML"], ["pdf", "Searchable PDF"],
  ["xlsx", "Tables (XLSX)"], ["csv", "Tables (CSV, zip)"], ["hocr", "hOCR"], ["alto", "ALTO"], ["docling", "Docling JSON"],
];

const STATE_TONES = { queued: "calm", reading: "busy", finished: "good", failed: "bad", cancelled: "calm" };
export const isOpen = (one) => one.state === "queued" || one.state === "reading";

export function stateChip(state) {
  return h("span", { class: `chip ${STATE_TONES[state] ?? "calm"}` }, state);
}

export function routeChip(route, number = null) {
  return h("span", { class: `chip route-${route}` }, number === null ? null : `${count(number)} `, ROUTES[route] ?? route);
}

export function routeChips(routes) {
  return Object.entries(routes ?? {}).filter(([, number]) => number > 0).map(([route, number]) => routeChip(route, number));
}

export function reasonChip({ signal, measured, threshold }) {
  const sign = measured >= threshold ? "≥" : "<";
  return h("li", { class: "chip reason" }, words(signal), " ", h("b", {}, `${measure(measured)} ${sign} ${measure(threshold)}`));
}

// Why a document failed, where its name stands beside it.
export function failureOf({ name, error }) {
  return error.message.startsWith(`${name}: `) ? error.message.slice(name.length + 2) : error.message;
}

export const settled = (one) => (one.pages?.done ?? 0) + (one.pages?.failed ?? 0);

export function pageProgress(one) {
  if (one.page_count === null || one.page_count === undefined) {
    return isOpen(one) ? h("span", { class: "quiet" }, "waiting to be opened") : null;
  }
  const failed = one.pages?.failed ?? 0;
  const text = isOpen(one) ? `${count(settled(one))} of ${plural(one.page_count, "page")}` : plural(one.page_count, "page");
  return [
    isOpen(one) && h("progress", { max: one.page_count, value: settled(one), "aria-label": `pages of ${one.name} that are read` }),
    h("span", { class: "numbers" }, text),
    failed > 0 && h("span", { class: "chip bad" }, `${count(failed)} failed`),
  ];
}

// Every format: what was asked for with the document, then what is made of it now.
export function downloadMenu(one, place) {
  const isOwn = ([format]) => (one.outputs ?? []).includes(format);
  const group = (heading, formats) => formats.length > 0 && h("div", { role: "group", "aria-label": heading }, h("p", { class: "menu-head", "aria-hidden": "true" }, heading), h("ul", {}, formats.map((format) => h(
    "li", {}, h("button", { type: "button", class: "plain", on: { click: () => { shut(); download(one, format, place); } } }, format[1]),
  ))));
  const menu = h("details", { class: "menu" }, h("summary", { class: "button", "aria-label": `Download ${one.name}` }, "Download"),
    h("div", { class: "menu-list" }, group("Asked for", FORMATS.filter(isOwn)), group("Other formats", FORMATS.filter((format) => !isOwn(format)))));
  const shut = () => {
    menu.open = false;
    menu.querySelector("summary").focus();
  };
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) shut();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  return menu;
}

// `columns` are [heading, whether numbers stand below it]; the first cell of a row is its heading.
export function figureTable(caption, columns, rows) {
  const cell = (content, place) => (place === 0 ? h("th", { scope: "row" }, content) : h("td", { class: columns[place][1] ? "numbers" : null }, content));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption }, h("table", { class: "figures" },
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, columns.map(([name, isNumber]) => h("th", { scope: "col", class: isNumber ? "numbers" : null }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

async function download(one, [format, label], place) {
  const told = `${label} of ${one.name} is on its way…`;
  replaced(place, h("p", { class: "quiet" }, told));
  say(told);
  try {
    await saved(`/v1/documents/${encodeURIComponent(one.id)}/result?format=${format}`, `${one.name}.${format}`);
    place.replaceChildren();
    say(`${label} of ${one.name} is saved`);
  } catch (error) {
    noticeIn(place)(error instanceof Problem ? error : new Problem({ detail: "the file could not be saved", advice: "try again" }));
  }
}
