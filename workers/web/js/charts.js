// Charts drawn by hand. Each has a text in place of the picture, and its figures in a table below.

import { h, svg } from "./dom.js";

const BAR_HEIGHT = 24;
const GAP = 12;
const COLUMN_GAP = 0.28;
const PLOT = { width: 720, height: 200, left: 8, bottom: 28, top: 24 };

// Bars that lie, one a name: [{name, value, text}].
export function barChart(title, rows) {
  const most = Math.max(...rows.map(({ value }) => value), 0) || 1;
  return h("div", { class: "bars", role: "img", "aria-label": `${title}: ${rows.map(({ name, text }) => `${name} ${text}`).join("; ")}` },
    rows.map(({ name, value, text }) => h("div", { class: "bar-row", "aria-hidden": "true" },
      h("span", { class: "bar-name" }, name),
      svg("svg", { class: "bar-svg", viewBox: `0 0 100 ${BAR_HEIGHT}`, preserveAspectRatio: "none", height: BAR_HEIGHT },
        svg("rect", { class: "track", x: 0, y: GAP / 2, width: 100, height: GAP }),
        svg("rect", { class: "fill", x: 0, y: GAP / 2, width: Math.max(value > 0 ? 0.5 : 0, (100 * value) / most), height: GAP })),
      h("span", { class: "numbers" }, text))));
}

// Columns by day: [{name, value, text}], the scale from 0.
export function columnChart(title, rows) {
  const most = Math.max(...rows.map(({ value }) => value), 0) || 1;
  const step = (PLOT.width - PLOT.left) / Math.max(rows.length, 7);
  const height = PLOT.height - PLOT.top - PLOT.bottom;
  const labelled = Math.ceil(rows.length / 8);
  const peak = rows.reduce((best, row) => (row.value > best.value ? row : best), rows[0]);
  return svg("svg", { class: "columns", viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "img", "aria-label": `${title}, ${rows.length} days from ${rows[0].name} to ${rows.at(-1).name}; most on ${peak.name}: ${peak.text}` },
    svg("line", { class: "axis", x1: PLOT.left, x2: PLOT.width, y1: PLOT.height - PLOT.bottom, y2: PLOT.height - PLOT.bottom }),
    rows.map((row, place) => {
      const tall = Math.max(row.value > 0 ? 2 : 0, (height * row.value) / most);
      const x = PLOT.left + place * step;
      const middle = x + step / 2;
      return [
        svg("rect", { class: "fill", x: x + (step * COLUMN_GAP) / 2, width: step * (1 - COLUMN_GAP), y: PLOT.height - PLOT.bottom - tall, height: tall, rx: Math.min(3, step / 6) }, svg("title", {}, `${row.name}: ${row.text}`)),
        row === peak && svg("text", { class: "peak", x: middle, y: PLOT.height - PLOT.bottom - tall - 8, "text-anchor": place < 2 ? "start" : "middle" }, row.text),
        place % labelled === 0 && svg("text", { x: middle, y: PLOT.height - 8, "text-anchor": "middle" }, row.name.slice(5)),
      ];
    }));
}

// What is spent and reserved of a limit.
export function budgetBar(title, { limit, spent, reserved }, format) {
  const part = (number) => (limit > 0 ? Math.min(100, (100 * number) / limit) : 0);
  const [used, held] = [part(spent), Math.min(100 - part(spent), part(reserved))];
  const label = `${title}: ${format(spent)} spent and ${format(reserved)} reserved of ${format(limit)}`;
  return svg("svg", { class: "budget-bar", viewBox: `0 0 100 ${GAP}`, preserveAspectRatio: "none", height: GAP, role: "img", "aria-label": label },
    svg("rect", { class: "track", x: 0, y: 0, width: 100, height: GAP }),
    svg("rect", { class: used >= 100 ? "fill spent" : "fill", x: 0, y: 0, width: used, height: GAP }),
    svg("rect", { class: "held", x: used, y: 0, width: held, height: GAP }));
}
