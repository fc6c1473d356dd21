// What went wrong, and what to do.

import { h, replaced, say } from "./dom.js";

export function problemNotice(problem, again = null) {
  return h(
    "div", { class: "notice bad", role: "alert" },
    h("p", {}, h("strong", {}, sentence(problem.message))),
    problem.advice && h("p", {}, sentence(problem.advice)),
    problem.errors?.length > 0 && h("ul", {}, problem.errors.map(({ field, message }) => h("li", {}, h("code", {}, field), `: ${message}`))),
    again && h("p", {}, h("button", { type: "button", on: { click: again } }, "Try again")),
  );
}

export function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

// A question that has to be answered before something is lost.
export function confirmed(question, { consequence, action }) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog", { "aria-labelledby": "question", on: { close: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } } },
      h("h2", { id: "question" }, question),
      h("p", {}, consequence),
      h("div", { class: "row end" },
        h("button", { type: "button", class: "quiet-button", on: { click: () => dialog.close("no") } }, "Keep it"),
        h("button", { type: "button", class: "danger", on: { click: () => dialog.close("yes") } }, action)),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Errors of what somebody did stand where they did it.
export function noticeIn(place) {
  return (error) => {
    if (error.name === "AbortError") return;
    replaced(place, problemNotice(error));
    say(error.message);
  };
}
