// Charts drawn by hand. Each has a text in place of the picture, and its figures in a table below.

import { h, svg } from "./dom.js";

const BAR_HEIGHT = 24;
const GAP = 12;
const COLUMN_SHARE = 0.72;
const COLUMN_MOST_PX = 40;
const PLOT = { height: 200, bottom: 28, top: 24, labelPx: 72 };

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

// Columns by day, from 0: [{name, value, text}]. Drawn for a place that is so wide, so that its letters have their size.
export function columnChart(title, rows, widthPx) {
  const most = Math.max(...rows.map(({ value }) => value), 0) || 1;
  const step = widthPx / rows.length;
  const width = Math.min(COLUMN_MOST_PX, step * COLUMN_SHARE);
  const floor = PLOT.height - PLOT.bottom;
  const labelled = Math.ceil((rows.length * PLOT.labelPx) / widthPx);
  const peak = rows.reduce((best, row) => (row.value > best.value ? row : best), rows[0]);
  const columns = rows.map((row, place) => {
    const tall = Math.max(row.value > 0 ? 2 : 0, ((floor - PLOT.top) * row.value) / most);
    const middle = (place + 0.5) * step;
    return [
      svg("rect", { class: "fill", x: middle - width / 2, width, y: floor - tall, height: tall, rx: Math.min(3, width / 4) }, svg("title", {}, `${row.name}: ${row.text}`)),
      row === peak && row.value > 0 && svg("text", { class: "peak", ...anchored(middle, widthPx), y: floor - tall - 8 }, row.text),
      place % labelled === 0 && svg("text", { x: Math.max(middle, 20), y: PLOT.height - 8, "text-anchor": "middle" }, row.name.slice(5)),
    ];
  });
  const label = `${title}, ${rows.length} days from ${rows[0].name} to ${rows.at(-1).name}; most on ${peak.name}: ${peak.text}`;
  return svg("svg", { class: "columns", viewBox: `0 0 ${widthPx} ${PLOT.height}`, role: "img", "aria-label": label },
    svg("line", { class: "axis", x1: 0, x2: widthPx, y1: floor, y2: floor }), columns);
}

// The text stays within the chart.
function anchored(middle, widthPx) {
  if (middle < PLOT.labelPx) return { x: 0, "text-anchor": "start" };
  if (middle > widthPx - PLOT.labelPx) return { x: widthPx, "text-anchor": "end" };
  return { x: middle, "text-anchor": "middle" };
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
