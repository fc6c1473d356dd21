// What is asked of the server. The key is kept for this tab alone, and goes in a header, never in an address.

const KEY = "doctriage-key";
const RETRY_FIRST_MS = 1_000;
const RETRY_MOST_MS = 30_000;

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

// A problem of RFC 9457, or that no answer came.
export class Problem extends Error {
  constructor({ detail, advice = null, code = null, status = 0, errors = [] }) {
    super(detail);
    this.advice = advice && !detail.includes(advice) ? advice : null;
    this.code = code;
    this.status = status;
    this.errors = errors;
  }
}

function headersFor(more) {
  const shown = key.get();
  return { ...(shown ? { Authorization: `Bearer ${shown}` } : {}), ...more };
}

export async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  let response;
  try {
    response = await fetch(path, { method, body, signal, headers: headersFor(headers), cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (response.ok) return response;
  const problem = problemOf(response.status, await response.text());
  if (problem.status === 401) window.dispatchEvent(new CustomEvent("signed-out", { detail: problem }));
  throw problem;
}

export async function json(path, options = {}) {
  const asked = { ...options, headers: { Accept: "application/json", ...options.headers } };
  if (options.send !== undefined) {
    asked.body = JSON.stringify(options.send);
    asked.headers["Content-Type"] = "application/json";
  }
  const response = await ask(path, asked);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

function unreachable() {
  return new Problem({ detail: "the server does not answer", advice: "check that it runs, and try again" });
}

function problemOf(status, text) {
  try {
    return new Problem({ status, ...JSON.parse(text) });
  } catch {
    return new Problem({ status, detail: `the server answered with status ${status}`, advice: "try again" });
  }
}

// One file, with its progress from 0 to 1; the answer is its document.
export function upload(form, { onProgress, idempotencyKey, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/v1/documents");
    for (const [name, value] of Object.entries(headersFor({ Accept: "application/json", "Idempotency-Key": idempotencyKey }))) {
      request.setRequestHeader(name, value);
    }
    request.upload.addEventListener("progress", (event) => event.lengthComputable && onProgress(event.loaded / event.total));
    request.addEventListener("error", () => reject(unreachable()));
    request.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(problemOf(request.status, request.responseText));
    });
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

// Server-sent events, from where they broke off, until one named `end` or the signal.
export async function followEvents(path, onEvent, signal) {
  let lastId = null;
  let pauseMs = RETRY_FIRST_MS;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", ...(lastId === null ? {} : { "Last-Event-ID": lastId }) };
      const response = await ask(path, { headers, signal });
      if (response.status === 204) return;
      for await (const event of parsed(response.body)) {
        pauseMs = RETRY_FIRST_MS;
        if (event.id !== null) lastId = event.id;
        if (event.name) onEvent(event.name, event.text ? JSON.parse(event.text) : null);
        if (event.name === "end") return;
      }
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    await paused(pauseMs, signal);
    pauseMs = Math.min(RETRY_MOST_MS, pauseMs * 2);
  }
}

async function* parsed(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { id: null, name: "", text: "" };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (event.name || event.text) yield { ...event, text: event.text.replace(/\n$/, "") };
        event = { id: null, name: "", text: "" };
        continue;
      }
      const [, field, text] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (field === "id") event.id = text;
      else if (field === "event") event.name = text;
      else if (field === "data") event.text += `${text}\n`;
    }
  }
}

export function paused(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export async function saved(path, name, signal) {
  const response = await ask(path, { signal });
  const address = URL.createObjectURL(await response.blob());
  const link = Object.assign(document.createElement("a"), { href: address, download: nameIn(response) ?? name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function nameIn(response) {
  const said = /filename\*=UTF-8''([^;]+)/i.exec(response.headers.get("Content-Disposition") ?? "");
  return said ? decodeURIComponent(said[1]) : null;
}
