// A key is asked for where the server wants one.

import { key } from "./api.js";
import { h, replaced } from "./dom.js";
import { problemNotice } from "./notices.js";

export function askForKey(main, problem, then) {
  const field = h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-help" });
  const form = h(
    "form", { class: "card sign-in", on: { submit: (event) => { event.preventDefault(); key.set(field.value.trim()); then(); } } },
    h("h1", { tabindex: -1 }, "Sign in"),
    problem && problemNotice(problem),
    h("label", { for: "key" }, "API key"),
    field,
    h("p", { class: "quiet", id: "key-help" }, "It is kept until this tab is closed. ", h("code", {}, "doctriage keys create"), " makes one."),
    h("button", { type: "submit", class: "strong" }, "Sign in"),
  );
  replaced(main, form);
  document.title = "Sign in · doctriage";
  field.focus();
}
