// Single keys, which can be switched off, and are no keys where somebody writes.

import { h } from "./dom.js";

const OFF = "doctriage-keys-off";

export function onKeys(keys, signal) {
  window.addEventListener("keydown", (event) => {
    if (event.key === "?" && !isWritten(event)) {
      event.preventDefault();
      showKeys(keys);
      return;
    }
    if (localStorage.getItem(OFF) || isWritten(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = keys.find(({ on }) => on.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.act();
  }, { signal });
}

function isWritten(event) {
  return document.querySelector("dialog[open]") !== null || event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

export function showKeys(keys) {
  const box = h("input", { type: "checkbox", checked: !localStorage.getItem(OFF), on: { change: () => {
    if (box.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "yes");
  } } });
  const dialog = h("dialog", { "aria-labelledby": "keys-title", on: { close: () => dialog.remove() } },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", { class: "keys" }, keys.map(({ on, label }) => h("div", {}, h("dt", {}, on.map((key) => h("kbd", {}, key))), h("dd", {}, label)))),
    h("label", {}, box, "Single keys act"),
    h("div", { class: "row end" }, h("button", { type: "button", class: "strong", on: { click: () => dialog.close() } }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}
