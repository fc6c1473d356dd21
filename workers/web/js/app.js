// Which view is shown, by the part of the address after #; and who looks.

import { json, key, Problem } from "./api.js";
import { h, replaced, say } from "./dom.js";
import { problemNotice } from "./notices.js";
import { askForKey } from "./sign_in.js";

const VIEWS = [
  [/^\/documents$/, "documents", () => import("./documents.js")],
  [/^\/documents\/([^/]+)(?:\/pages\/(\d+))?$/, "documents", () => import("./document.js")],
  [/^\/reviews$/, "reviews", () => import("./reviews.js")],
  [/^\/chargeback$/, "chargeback", () => import("./chargeback.js")],
];
const HOME = "#/documents";

const main = document.getElementById("content");
let current = new AbortController();
let shown = null;
let me = null;
let isFresh = true; // nothing was shown yet: the focus is where a browser has it

async function showView() {
  const [path, query = ""] = (location.hash || HOME).slice(1).split("?");
  const found = VIEWS.map(([pattern, view, load]) => [pattern.exec(path), view, load]).find(([match]) => match);
  if (!found) {
    location.replace(HOME);
    return;
  }
  const [match, view, load] = found;
  current.abort();
  current = new AbortController();
  const { signal } = current;
  markView(view);
  try {
    if (me === null && key.get() === null && !(await json("/web/access.json", { signal })).is_open) {
      signIn(null);
      return;
    }
    me ??= await json("/v1/me", { signal });
    showWho();
    const module = await load();
    if (signal.aborted) return;
    const staysAt = shown === `${view}/${match[1] ?? ""}`;
    await module.show(main, { me, signal, parts: match.slice(1).map((part) => part && decodeURIComponent(part)), query: new URLSearchParams(query), staysAt });
    if (signal.aborted) return;
    shown = `${view}/${match[1] ?? ""}`;
    settleFocus(staysAt);
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted || error.status === 401) return;
    shown = null;
    if (me === null) showWho();
    replaced(main, h("h1", { tabindex: -1 }, "This cannot be shown"), problemNotice(error instanceof Problem ? error : fault(error), showView));
    settleFocus(false);
  }
}

function fault(error) {
  console.error(error);
  return new Problem({ detail: "the page came upon something that it did not expect", advice: "load it again" });
}

function markView(view) {
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// To the heading of the new view, so that whoever does not see it is told; not when the focus is at home in it.
function settleFocus(staysAt) {
  const heading = main.querySelector("h1");
  document.title = heading ? `${heading.textContent} · doctriage` : "doctriage";
  heading?.setAttribute("tabindex", "-1");
  const wasFresh = isFresh;
  isFresh = false;
  if (wasFresh || (staysAt && main.contains(document.activeElement))) return;
  heading?.focus({ preventScroll: staysAt });
  if (!staysAt) window.scrollTo(0, 0);
}

function showWho() {
  const name = me === null ? "" : me.is_admin ? "all cost centres" : me.cost_centre;
  replaced(
    document.getElementById("who"),
    h("span", { class: "who-name", title: "whose documents you see" }, name),
    key.get() && h("button", { type: "button", class: "plain", on: { click: signOut } }, "Sign out"),
  );
}

function signOut() {
  key.forget();
  location.reload();
}

function signIn(problem) {
  isFresh = false;
  shown = null;
  me = null;
  replaced(document.getElementById("who"));
  askForKey(main, problem, () => {
    say("signed in");
    showView();
  });
}

window.addEventListener("signed-out", (event) => {
  current.abort();
  key.forget();
  signIn(event.detail);
});
window.addEventListener("hashchange", () => {
  if (location.hash === "#content") return;
  showView();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (main.querySelector("h1") ?? main).focus();
});
showView();
