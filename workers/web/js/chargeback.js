// Who pays what, what triage avoided, and where the budgets stand.

import { json } from "./api.js";
import { barChart, budgetBar, columnChart } from "./charts.js";
import { h, replaced } from "./dom.js";
import { count, money, plural } from "./format.js";
import { figureTable } from "./parts.js";

const BY = { team: "Team", day: "Day", model: "Model" };
const CARD_PADDING_PX = 100;
const DAYS_DRAWN = 400;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export async function show(main, { signal, query }) {
  const by = BY[query.get("by")] ? query.get("by") : "team";
  const span = { from: dayOr(query.get("from"), firstOfMonth()), to: dayOr(query.get("to"), null) };
  const asked = new URLSearchParams({ by, from: span.from, ...(span.to ? { to: dayAfter(span.to) } : {}) });
  const [statement, budgets] = await Promise.all([json(`/v1/chargeback?${asked}`, { signal }), json("/v1/budgets", { signal })]);
  if (signal.aborted) return;
  replaced(
    main,
    h("h1", {}, "Chargeback"),
    spanForm(by, span),
    h("section", { "aria-labelledby": "totals-title" }, h("h2", { id: "totals-title", class: "unseen" }, "Totals"), totals(statement)),
    h("section", { class: "card", "aria-labelledby": "by-title" },
      h("div", { class: "row between" }, h("h2", { id: "by-title" }, `Cost by ${BY[by].toLowerCase()}`),
        h("nav", { class: "choices", "aria-label": "Lines" }, Object.entries(BY).map(([name, label]) => h("a", { href: hashOf(name, span), "aria-current": name === by ? "true" : null }, label)))),
      currencies(statement).map((currency) => chargesIn(statement, by, currency, main.clientWidth - CARD_PADDING_PX)),
      statement.lines.length === 0 && h("p", { class: "empty" }, "Nothing was booked in this time.")),
    h("section", { class: "card", "aria-labelledby": "budgets-title" }, h("h2", { id: "budgets-title" }, `Budgets in ${budgets.month ?? "this month"}`), budgetList(budgets.budgets ?? [])),
  );
}

const hashOf = (by, { from, to }) => `#/chargeback?${new URLSearchParams({ by, from, ...(to ? { to } : {}) })}`;
const dayOr = (text, otherwise) => (text && DAY.test(text) ? text : otherwise);
const today = () => new Date().toISOString().slice(0, 10);
const firstOfMonth = () => `${today().slice(0, 8)}01`;
// The server's end is the day after the last one.
const dayAfter = (day) => new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
const currencies = (statement) => [...new Set(statement.lines.map((line) => line.currency))];

function spanForm(by, { from, to }) {
  const last = h("input", { type: "date", id: "to", value: to ?? "", min: from });
  const first = h("input", { type: "date", id: "from", value: from, max: today(), required: true, on: { input: () => { last.min = first.value; } } });
  return h("form", { class: "row filters", on: { submit: (event) => { event.preventDefault(); location.hash = hashOf(by, { from: first.value, to: last.value || null }); } } },
    h("div", { class: "field" }, h("label", { for: "from" }, "From"), first),
    h("div", { class: "field" }, h("label", { for: "to" }, "To, included"), last),
    h("button", { type: "submit" }, "Show"));
}

function totals(statement) {
  if (statement.totals.length === 0) return null;
  return statement.totals.map((total) => h("dl", { class: "totals" }, [
    ["Cost", money(total.cost, total.currency), total.unpriced_entries > 0 && `${plural(total.unpriced_entries, "entry", "entries")} without a price`],
    ["Pages", count(total.pages), `${count(total.vlm_pages)} by the VLM`],
    ["Tokens billed", count(total.prompt_tokens + total.completion_tokens), `${plural(total.vlm_calls, "call")}`],
    ["Tokens avoided", count(total.avoided_tokens), total.avoided_cost === null ? null : `would cost ${money(total.avoided_cost, total.currency)}`],
    ["Wasted", count(total.wasted_tokens), `tokens in ${plural(total.wasted_attempts, "attempt")}`],
  ].map(([name, value, more]) => h("div", { class: "card total" }, h("dt", {}, name), h("dd", {}, h("span", { class: "figure numbers" }, value), more && h("span", { class: "quiet" }, more))))));
}

function chargesIn(statement, by, currency, widthPx) {
  const lines = statement.lines.filter((line) => line.currency === currency);
  const rows = (by === "day" ? days(statement, lines) : lines.map((line) => [nameOf(line, by), line.cost])).map(([name, cost]) => ({ name, value: Number(cost ?? 0), text: money(cost, currency) }));
  const title = `Cost by ${BY[by].toLowerCase()} in ${currency}`;
  return h("figure", { class: "chart" },
    by === "day" ? columnChart(title, rows, widthPx) : barChart(title, rows),
    figureTable(title, [[BY[by]], ...["Pages", "By the VLM", "Prompt", "Answer", "Avoided", "Cost"].map((name) => [name, true])], lines.map((line) => [
      nameOf(line, by), ...[line.pages, line.vlm_pages, line.prompt_tokens, line.completion_tokens, line.avoided_tokens].map(count), money(line.cost, currency),
    ])));
}

// Each day of the span that has come, also those on which nothing was booked.
function days(statement, lines) {
  const costs = new Map();
  const latest = today();
  for (let day = statement.from; day < statement.to && day <= latest && costs.size < DAYS_DRAWN; day = dayAfter(day)) costs.set(day, "0");
  for (const line of lines) costs.set(line.day, String(Number(costs.get(line.day) ?? 0) + Number(line.cost ?? 0)));
  return [...costs].sort(([a], [b]) => (a < b ? -1 : 1));
}

function nameOf(line, by) {
  const name = line[by] ?? (by === "model" ? "no model" : "none");
  return line.is_forced_vlm ? `${name} (forced to the VLM)` : name;
}

function budgetList(budgets) {
  if (budgets.length === 0) return h("p", { class: "empty" }, "No budget is set. ", h("code", {}, "doctriage budget set"), " sets one.");
  return [
    h("ul", { class: "budgets" }, budgets.map((one) => h("li", {},
      h("div", { class: "row between" }, h("strong", {}, one.cost_centre),
        h("span", { class: `chip ${isSpent(one) ? "bad" : one.is_warned_of ? "warn" : "good"}` }, isSpent(one) ? "spent" : one.is_warned_of ? `over ${one.warn_percent} %` : "within")),
      levels(one).map(({ name, level, format }) => [
        h("div", { class: "row between quiet" }, h("span", {}, `${format(level.spent)} of ${format(level.limit)}`), h("span", {}, `${format(level.left)} left${level.reserved > 0 ? `, ${format(level.reserved)} reserved` : ""}`)),
        budgetBar(`${one.cost_centre}, ${name}`, level, format)])))),
    figureTable("Budgets of this month", [["Cost centre"], ["Of"], ["Limit", true], ["Spent", true], ["Reserved", true], ["Left", true], ["When spent"]],
      budgets.flatMap((one) => levels(one).map(({ name, level, format }) => [one.cost_centre, name, ...["limit", "spent", "reserved", "left"].map((part) => format(level[part])), one.when_spent]))),
  ];
}

function levels(budget) {
  const found = [];
  if (budget.money) {
    const { currency, ...amounts } = budget.money;
    const level = Object.fromEntries(Object.entries(amounts).map(([name, text]) => [name, Number(text)]));
    found.push({ name: "money", level, format: (number) => money(String(number), currency) });
  }
  if (budget.tokens) found.push({ name: "tokens", level: budget.tokens, format: (number) => `${count(number)} tokens` });
  return found;
}

const isSpent = (budget) => levels(budget).some(({ level }) => level.left <= 0);
