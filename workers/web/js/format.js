// Numbers, times and names as people read them.

const whole = new Intl.NumberFormat("en");
const time = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));
export const share = (number) => (number === null || number === undefined ? "–" : `${Math.round(number * 100)} %`);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const instant = (text) => (text ? time.format(new Date(text)) : "–");

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  if (number < 1000) return `${number} B`;
  const power = Math.min(3, Math.floor(Math.log10(number) / 3));
  return `${(number / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB"][power]}`;
}

export function measure(number) {
  if (number === null || number === undefined) return "–";
  return Number.isInteger(number) ? count(number) : String(Number(number.toPrecision(3)));
}

export function seconds(number) {
  return number === null || number === undefined ? "–" : `${number.toFixed(number < 10 ? 1 : 0)} s`;
}

// Amounts come as exact text; two places are shown, more where they would show nothing.
export function money(text, currency) {
  if (text === null || text === undefined) return "no price";
  const number = Number(text);
  const isSmall = number !== 0 && Math.abs(number) < 0.1;
  const places = isSmall ? { minimumFractionDigits: 2, maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `${number.toLocaleString("en", places)}${currency ? ` ${currency}` : ""}`;
}

export const words = (name) => name.replaceAll("_", " ");

export const ROUTES = {
  text_layer: "text layer",
  ocr: "OCR",
  vlm: "VLM",
  blank: "blank",
  ocr_degraded: "OCR, degraded",
};

export const KINDS = {
  line: "lines",
  word: "words",
  table: "tables",
  stamp: "stamps",
  handwriting: "handwriting",
  figure: "figures",
  uncovered_ink: "uncovered ink",
};
