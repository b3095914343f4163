// Numbers and sentences as a person writes them.

const FINEST = 6;

/** Decimals of a number that is known up to this much: its last digit is of the size of the uncertainty. */
export function decimalsFor(half) {
  if (!Number.isFinite(half) || half <= 0) return 3;
  const exponent = Math.floor(Math.log10(half));
  return -exponent + (half / 10 ** exponent < 3 ? 1 : 0);
}

export function roundTo(value, decimals) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  if (decimals > FINEST || Math.abs(value) >= 1e12) return value.toPrecision(2).replace("-", "\u2212");
  const scale = 10 ** decimals;
  const rounded = Math.round(value * scale) / scale + 0;
  const digits = { minimumFractionDigits: Math.max(decimals, 0), maximumFractionDigits: Math.max(decimals, 0) };
  return rounded.toLocaleString("en-US", digits).replace("-", "\u2212");
}

/** A number rounded to what its interval supports; three decimals without one. */
export function number(value, interval = null) {
  if (value === null || value === undefined) return "-";
  return roundTo(value, knownTo(interval));
}

export function interval(ends) {
  if (!ends) return "-";
  return `${roundTo(ends[0], knownTo(ends))} to ${roundTo(ends[1], knownTo(ends))}`;
}

function knownTo(ends) {
  return ends && ends.every(Number.isFinite) ? Math.max(decimalsFor((ends[1] - ends[0]) / 2), 0) : 3;
}

export const short = (value) =>
  value === null || value === undefined
    ? "-"
    : Number(value.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 6 }).replace("-", "\u2212");

/** A size of which only the order matters: two digits. */
export const rough = (value) =>
  Number(value.toPrecision(2)).toLocaleString("en-US", { maximumFractionDigits: 6 }).replace("-", "\u2212");

/** A sentence that ends as one. */
export const sentence = (text) => capital(/[.!?]$/.test(text) ? text : `${text}.`);

export const count = (n, word, many = `${word}s`) => `${n.toLocaleString("en-US")} ${n === 1 ? word : many}`;

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** How probable it is, without false precision. */
export function probability(p) {
  if (p === null || p === undefined) return "not estimated";
  if (p > 0.99) return "over 99%";
  if (p < 0.01) return "under 1%";
  return `${Math.round(100 * p)}%`;
}

/** The time of an entry, in the zone of whoever looks. */
export function moment(text) {
  const time = new Date(text);
  const two = (n) => String(n).padStart(2, "0");
  return Number.isNaN(time.getTime())
    ? text
    : `${[time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join("-")} ` +
        `${two(time.getHours())}:${two(time.getMinutes())}`;
}

/** The round after the last one, by the distance of the last two: a number or a date; "" if neither. */
export function following(rounds) {
  const [before, last] = rounds.length > 1 ? rounds.slice(-2) : [null, rounds.at(-1) ?? ""];
  if (/^\d+$/.test(last)) return String(Number(last) + 1);
  if (!/^\d{4}-\d\d-\d\d$/.test(last)) return "";
  const day = 86_400_000;
  const step = before === null ? day : Math.max(day, Date.parse(last) - Date.parse(before));
  return new Date(Date.parse(last) + step).toISOString().slice(0, 10);
}

/** A number that somebody typed: null for an empty field. */
export function typed(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const found = Number(trimmed);
  if (!Number.isFinite(found)) throw new RangeError(`${trimmed}: must be a number, with a point as in 0.5`);
  return found;
}

/** Items of a list that somebody typed. */
export const items = (text, separator) =>
  text
    .split(separator)
    .map((item) => item.trim())
    .filter(Boolean);
