// Elements are made of text and attributes; no text of a document is ever taken for HTML.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, options = {}, ...children) {
  return made(document.createElement(tag), options, children);
}

export function svg(tag, options = {}, ...children) {
  return made(document.createElementNS(SVG, tag), options, children);
}

function made(element, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (name === "value") {
      element.value = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replaced(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// The server has sanitised it; here each element and attribute is let through by name, once more.
const LET_THROUGH = {
  "": [],
  a: ["href"], table: [], thead: [], tbody: [], tfoot: [], tr: [], caption: [],
  td: ["colspan", "rowspan"], th: ["colspan", "rowspan", "scope"],
  ol: ["start"], ...Object.fromEntries(
    ("h1 h2 h3 h4 h5 h6 p ul li br hr em strong b i u s del sub sup code pre blockquote span div section dl dt dd")
      .split(" ").map((tag) => [tag, []]),
  ),
};
const HEADING_BELOW = 2;

const policy = globalThis.trustedTypes?.createPolicy("doctriage", { createHTML: (text) => text });

export function sanitisedFragment(text) {
  const parsed = new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
  const fragment = document.createDocumentFragment();
  for (const node of parsed.body.childNodes) appendClean(fragment, node);
  return fragment;
}

function appendClean(parent, node) {
  if (node.nodeType === Node.TEXT_NODE) {
    parent.append(node.data);
    return;
  }
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  const tag = node.localName;
  if (["script", "style", "template", "iframe", "object", "svg", "math"].includes(tag)) return;
  let target = parent;
  if (tag in LET_THROUGH && tag !== "") {
    target = document.createElement(lowered(tag));
    for (const name of LET_THROUGH[tag]) {
      const value = node.getAttribute(name);
      if (value !== null && (name !== "href" || /^https?:/i.test(value))) target.setAttribute(name, value);
    }
    if (tag === "a") target.setAttribute("rel", "noopener noreferrer");
    parent.append(target);
  }
  for (const child of node.childNodes) appendClean(target, child);
}

// A page's headings come below those of the view.
function lowered(tag) {
  const level = /^h([1-6])$/.exec(tag);
  return level ? `h${Math.min(6, Number(level[1]) + HEADING_BELOW)}` : tag;
}

export function say(text) {
  document.getElementById("says").textContent = text;
}
