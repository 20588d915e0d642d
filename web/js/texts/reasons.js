// The words of every code that the service answers with: it serves them as codes.js, from strategy/reasons.py.
import { amount, span } from "../format.js";
import { FAULTS, MARKS, REASONS } from "./codes.js";

export { FAULTS, MARKS, REASONS };

/** A server's words about what it could not do, as they are said to people. */
export const plainWords = (text) => (text || "").replace(/\bfailed to\b/g, "could not").replace(/^./, (first) => first.toUpperCase());

const unknown = (code) => [String(code).replaceAll("_", " "), "", "keep"];

/** {title, why, kind} of a reason or a fate. */
export function reasonOf(code) {
  const [title, why, kind] = REASONS[code] || unknown(code);
  return { title, why, kind };
}

/** {title, why} of a mark. */
export function markOf(code) {
  const [title, why] = MARKS[code] || unknown(code);
  return { title, why };
}

/** Says which address to send money to, and how much; without `sats` the amount is not known. */
export const fundWords = (address, sats) => `Send ${sats ? `at least ${amount(sats)}` : "sats"} to ${address}.`;

/** {title, why} of what went wrong, by its code; the server's words where no code says more than they do. */
export function faultOf(task) {
  const [title, why] = (task.lastErrorCode !== "other" && FAULTS[task.lastErrorCode]) || [plainWords(task.lastError), ""];
  const { address, sendSats } = task.lastErrorParams || {};
  return { title, why: address ? `${why} ${fundWords(address, sendSats)}` : why };
}

/** What a rung's detail names: the end that holds its price down, or the ceiling of signatures that is full. */
const DETAILS = {
  raise: "It outranks the best bid.",
  ask: "The lowest ask caps it.",
  hardcap: "The hard cap leaves no room: raise it, or lower the range.",
  low: "It would fall below the low end.",
  min_bid: "The marketplace accepts no bid this low.",
  tick: "The range contains no price step of the marketplace.",
  thin_book: "Too few asks for a VWAP.",
};

const LIMITS = { task: "This task's signing limit", user: "Your signing limit", installation: "All users' signing limit" };

/**
 * The sentence of a rung's detail, "" for one that says nothing more. `since` is how many seconds ago it was decided: a wait that
 * was named then is shorter by that.
 */
export function detailWords(detail, since = 0) {
  if (/^send /.test(detail)) return `${detail[0].toUpperCase()}${detail.slice(1)}.`;
  const { whose, kept, left } = signingRoom(detail) || {};
  if (!whose) return DETAILS[detail] || "";
  const why = kept ? `${LIMITS[whose]}: the remaining room is reserved for renewals.` : `${LIMITS[whose]} is reached.`;
  return left === null ? why : `${why} ${left > since ? `Enough frees up in ${span(left - since)}.` : "Enough has freed up since."}`;
}

/** What a rung's detail says of the signing limit: {whose, kept, left}, `left` in seconds or null; null of any other detail. */
export function signingRoom(detail) {
  const [, whose, kept, left] = /^(task|user|installation)(, kept for renewals)?(?:, frees in (\d+) s)?$/.exec(detail || "") || [];
  return whose ? { whose, kept: kept !== undefined, left: left === undefined ? null : Number(left) } : null;
}
