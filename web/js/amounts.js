// The grammar of numbers in fields: sats, counts and decimals. Every field reads by it. A text with two readings is a fault that
// names both, and no separator is ever dropped. Sats are computed by BigInt, decimals by their digits.

const MOST_SATS = 2_100_000_000_000_000n;
const MOST_DIGITS = 15; // more than that a Number does not keep

/** The value of a field whose text cannot be read. A save sends it as it is, and the server refuses it. */
export const isUnread = (value) => typeof value === "object" && value !== null && "unread" in value;

/** Whether a value, or a part of it, cannot be read. */
export const hasUnread = (value) => isUnread(value) || (typeof value === "object" && value !== null && Object.values(value).some(hasUnread));

/** The number of a field's value, or `other` where the field is empty or cannot be read. */
export const numberOf = (value, other = null) => (typeof value === "number" && Number.isFinite(value) ? value : other);

const conventions = new Map();

/** How people of a locale write numbers: {decimal, group, isIndian}; Indian groups are 1,00,000. */
export function conventionOf(locale) {
  if (!conventions.has(locale)) {
    const parts = new Intl.NumberFormat(locale, { numberingSystem: "latn" }).formatToParts(1_234_567_890.5);
    const found = (type) => parts.filter((part) => part.type === type).map((part) => part.value);
    conventions.set(locale, { decimal: found("decimal")[0], group: found("group")[0] ?? "", isIndian: found("integer").slice(1).some((digits) => digits.length === 2) });
  }
  return conventions.get(locale);
}

const here = () => navigator.language;
const grouped = (whole, locale = here()) => new Intl.NumberFormat(locale, { numberingSystem: "latn", maximumFractionDigits: 0 }).format(BigInt(whole));

/** Moves the decimal point of a number's text by its digits: ("92.5", -2) is "0.925". Takes exponents, too. */
function moved(text, places) {
  const [, sign, whole, part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(text);
  const at = whole.length + Number(power) + places;
  const digits = `${"0".repeat(Math.max(0, 1 - at))}${whole}${part}`.padEnd(at, "0");
  const point = Math.max(1, at);
  const [left, right] = [digits.slice(0, point).replace(/^0+(?=\d)/, ""), digits.slice(point).replace(/0+$/, "")];
  return sign + (right ? `${left}.${right}` : left);
}

/** Whole sats as the locale groups them. */
export const writeSats = (sats, locale = here()) => grouped(sats, locale);

/** Sats as bitcoin with eight decimals, in the locale's separators. */
export function writeBtc(sats, locale = here()) {
  const digits = BigInt(sats).toString().padStart(9, "0");
  return `${grouped(digits.slice(0, -8), locale)}${conventionOf(locale).decimal}${digits.slice(-8)}`;
}

/** A decimal number moved by `places`, without groups: (0.925, 2) is "92.5", or "92,5" where the locale has a comma. */
export const writeDecimal = (number, places = 0, locale = here()) => moved(String(number), places).replace(".", conventionOf(locale).decimal);

const GROUPS = /^[1-9]\d{0,2}(?:(.)\d{3})(?:\1\d{3})*$/;
const INDIAN_GROUPS = /^[1-9]\d?(?:,\d{2})*,\d{3}$/;

/**
 * Splits a text of digits and separators: {is} is its one reading, {whole, part}; {may, joined} are two readings, with a decimal
 * point or without a separator, and `isGroup` says that the second one is validly grouped. Null without a reading.
 */
function readingsOf(text, { decimal, group, isIndian }) {
  const marks = text.replace(/\d/g, "");
  const last = marks.slice(-1);
  const [left, right] = [text.slice(0, text.lastIndexOf(last)), text.slice(text.lastIndexOf(last) + 1)];
  const isGrouped = (digits) => GROUPS.test(digits) || (isIndian && INDIAN_GROUPS.test(digits));
  const joined = { whole: text.replace(/\D/g, ""), part: "" };
  if (!joined.whole) return null;
  if (!marks) return { is: joined };
  if (!",.".includes(last) || marks.indexOf(last) < marks.length - 1) return isGrouped(text) ? { is: joined } : null;
  if (!right || (marks.length > 1 && !isGrouped(left))) return null;
  const may = { whole: left.replace(/\D/g, "") || "0", part: right };
  const isGroup = isGrouped(text) && [",", group].includes(last);
  // The page itself writes decimal points: a point that groups nothing is one in every locale. A comma is one where the locale has it.
  const isDecimal = last === decimal || ",.".includes(marks.at(-2)) || (last === "." && !isGroup);
  return isDecimal ? { is: may } : { may, joined, isGroup };
}

/**
 * Reads a text by a kind's rules: {value} is null where the text is empty; else {fault, values} names a text of the page. A kind
 * has `split(text)` into [number, unit], `value(digits, unit)` (null where it takes none), `guess` for a part that it does
 * not take, `say(value)` for the readings in a fault, `fault` for any other text, `edit` and `write` for the field with and without the focus.
 */
export function read(text, kind, locale = here()) {
  const plain = text.trim().replace(/\s/g, " ").replaceAll("’", "'");
  if (!plain) return { value: null };
  const [digits, unit] = kind.split(plain) || [];
  const found = digits === undefined || !/^[\d,.' _]+$/.test(digits) ? null : readingsOf(digits, conventionOf(locale));
  if (!found) return kind.fault(locale);
  const of = (reading) => kind.value(reading, unit);
  const is = found.is ? of(found.is) : found.isGroup && of(found.may) === null ? of(found.joined) : null;
  if (is !== null) return kind.bound?.(is, locale) || { value: is };
  const may = found.is || found.may;
  if (!may.part) return kind.fault(locale);
  const readings = [of(may) ?? kind.guess(may, unit), of({ whole: may.whole + may.part, part: "" })].filter((value) => value !== null);
  const words = [...new Set(readings.map((value) => kind.say(value, locale)))];
  return words.length ? { fault: kind.either || "field.either", values: { readings: words } } : kind.fault(locale);
}

const PLACES = { "": 0, sat: 0, sats: 0, k: 3, m: 6, btc: 8, "₿": 8 };
const AMOUNT = /^(₿|btc)? ?([^a-z₿]*?) ?(k|m)? ?(sats?|btc|₿)?$/i;

function satsOf({ whole, part }, unit) {
  const places = PLACES[unit] - part.length;
  const sats = places < 0 ? null : BigInt(whole + part) * 10n ** BigInt(places);
  return sats === null || sats > MOST_SATS ? null : Number(sats);
}

/** Whole sats: "2,520,000", "0.05 btc", "₿0.05", "500k", "1.5m sats". */
export const SATS = {
  inputmode: "text",
  split(text) {
    const [, before = "", number, times = "", after = ""] = AMOUNT.exec(text) || [];
    const units = [before, times, after].map((each) => each.toLowerCase());
    const given = units.filter((each) => each && !each.startsWith("sat"));
    return number === undefined || given.length > 1 || (before && after) ? null : [number, given[0] || after && "sats"];
  },
  value: satsOf,
  // Parts without a unit are a bitcoin's, unless the amount is too large for that; else parts of a sat are left out.
  guess({ whole, part }, unit) {
    const isBitcoin = unit === "" && /[1-9]/.test(part) && whole.length < 4;
    return isBitcoin ? satsOf({ whole, part }, "btc") : satsOf({ whole, part: part.slice(0, PLACES[unit]) }, unit);
  },
  write: writeSats,
  edit: String,
  say: (sats, locale) => `${writeSats(sats, locale)} sats (${writeBtc(sats, locale).replace(/\D?0+$/, "")} BTC)`,
  either: "field.either_sats",
  fault: (locale) => ({ fault: "field.no_sats", values: { sats: writeSats(1_200_000, locale), btc: writeDecimal(0.012, 0, locale), times: writeDecimal(1.5, 0, locale) } }),
};

/** A whole number from `min` to `max`. */
export const countOf = (min = 0, max = Number.MAX_SAFE_INTEGER) => ({
  inputmode: "numeric",
  split: (text) => [text, ""],
  value: ({ whole, part }) => (part || whole.length > MOST_DIGITS ? null : Number(whole)),
  guess: ({ whole }) => Number(whole),
  write: grouped,
  edit: String,
  say: grouped,
  bound: (number, locale) => (number < min || number > max ? { fault: "field.between", values: { min: grouped(min, locale), max: max < Number.MAX_SAFE_INTEGER ? grouped(max, locale) : null } } : null),
  fault: () => ({ fault: "field.no_count", values: {} }),
});

/** A decimal number that is written moved by `places`: 2 takes "92.5" or "92.5 %" as 0.925. */
export const decimalOf = (places = 0, unit = "") => ({
  inputmode: "decimal",
  split: (text) => [unit && text.endsWith(unit) ? text.slice(0, -unit.length).trim() : text, ""],
  value: ({ whole, part }) => ((whole + part).replace(/^0+/, "").length > MOST_DIGITS ? null : Number(moved(part ? `${whole}.${part}` : whole, -places))),
  guess: () => null,
  write: (number, locale) => writeDecimal(number, places, locale),
  edit: (number, locale) => writeDecimal(number, places, locale),
  say: (number, locale) => `${writeDecimal(number, places, locale)}${unit === "%" ? unit : unit && ` ${unit}`}`,
  fault: (locale) => ({ fault: "field.no_number", values: { example: writeDecimal(92.5, 0, locale) } }),
});
