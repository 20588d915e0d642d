// Money and time as people read them. Money is whole sats in a Number: all there will ever be is 2.1e15, below 2^53.
import { signal } from "@preact/signals";
import { device } from "./kept.js";

export const NONE = "–";

/** "sats" or "btc": how amounts are shown. */
export const unit = signal(device.getItem("unit") === "btc" ? "btc" : "sats");
unit.subscribe((value) => device.setItem("unit", value));

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
// An object is a text that cannot be read (amounts.js), or null.
const isMissing = (value) => value === undefined || typeof value === "object" || Number.isNaN(value);

/** Whole sats with groups of three: 2,520,000. */
export function sats(value) {
  return isMissing(value) ? NONE : grouped.format(BigInt(Math.round(Number(value)))).replace("-", "−");
}

/** Bitcoin with all eight decimals: 0.02520000. */
export function btc(value) {
  if (isMissing(value)) return NONE;
  const whole = BigInt(Math.round(Number(value)));
  const digits = (whole < 0n ? -whole : whole).toString().padStart(9, "0");
  return `${whole < 0n ? "−" : ""}${grouped.format(BigInt(digits.slice(0, -8)))}.${digits.slice(-8)}`;
}

/** An amount in the chosen unit, without the unit's name. */
export const money = (value) => (unit.value === "btc" ? btc(value) : sats(value));

export const unitName = () => (unit.value === "btc" ? "BTC" : "sats");

/** An amount with its unit, for sentences. */
export const amount = (value) => (isMissing(value) ? NONE : `${money(value)} ${unitName()}`);

/** A price per token, in sats: four significant decimals of what the server tells. */
export function perToken(value) {
  if (isMissing(value)) return NONE;
  const number = Number(value);
  const options = Math.abs(number) >= 1 ? { maximumFractionDigits: 4 } : { maximumSignificantDigits: 4 };
  return new Intl.NumberFormat("en-US", options).format(number);
}

/** A share of one as percent: 0.9 is "90%", with a decimal where it has one. */
export function percent(part, decimals = 1) {
  if (isMissing(part) || !Number.isFinite(Number(part))) return NONE;
  return `${new Intl.NumberFormat("en-US", { maximumFractionDigits: decimals }).format(100 * part)}%`;
}

/** How many items, or tokens of a rune, which may be parts of one. */
export const quantity = (value) => (isMissing(value) ? NONE : new Intl.NumberFormat("en-US", { maximumFractionDigits: 18 }).format(value));

export const count = (value) => (isMissing(value) ? NONE : grouped.format(value));

/** How long ago, or how long from now: "3 s", "12 min", "5 h", "3 d". */
export function span(seconds) {
  const past = Math.max(0, Math.round(seconds));
  if (past < 90) return `${past} s`;
  if (past < 5400) return `${Math.round(past / 60)} min`;
  if (past < 129_600) return `${Math.round(past / 3600)} h`;
  return `${Math.round(past / 86_400)} d`;
}

/** Seconds since 1970 of a time that the server tells: Unix seconds, or ISO 8601; null of none. */
export function secondsOf(time) {
  if (isMissing(time)) return null;
  return typeof time === "number" ? time : Date.parse(time) / 1000;
}

const day = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-CA");

/** Local time of day, with seconds where it is less than an hour from `now`; another day has its date. */
export function clock(seconds, now = Date.now() / 1000) {
  if (isMissing(seconds)) return NONE;
  const time = new Date(seconds * 1000).toLocaleTimeString("en-GB").slice(0, Math.abs(now - seconds) < 3600 ? 8 : 5);
  return day(seconds) === day(now) ? time : `${day(seconds)} ${time.slice(0, 5)}`;
}

export const iso = (seconds) => (isMissing(seconds) ? "" : new Date(seconds * 1000).toISOString());

/** The two ends of a long text. */
export function short(text, head = 8, tail = 6) {
  return text && text.length > head + tail + 1 ? `${text.slice(0, head)}…${text.slice(-tail)}` : text || "";
}

/** The calls in 30 days that the tightest quota of a marketplace's key allows; null where it has none. */
export function monthOf({ callsPerMonth, callsPerDay }) {
  const found = [callsPerMonth, callsPerDay && 30 * callsPerDay].filter(Boolean);
  return found.length ? Math.min(...found) : null;
}
