// The words of every code that the service answers with: it serves them as codes.js, from strategy/reasons.py.
import { amount } from "../format.js";
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

/** The server's words as a sentence for people. */
export function spoken(words) {
  const said = (words || "").replace(/^failed to /, "could not ");
  return said.slice(0, 1).toUpperCase() + said.slice(1);
}

/** Says which address to send money to, and how much; without `sats` the amount is not known. */
export const fundWords = (address, sats) => `Send ${sats ? `at least ${amount(sats)}` : "sats"} to ${address}.`;

/** {title, why} of what went wrong, by its code; the server's words where no code says more than they do. */
export function faultOf(task) {
  const [title, why] = (task.lastErrorCode !== "other" && FAULTS[task.lastErrorCode]) || [spoken(task.lastError), ""];
  const { address, sendSats } = task.lastErrorParams || {};
  return { title, why: address ? `${why} ${fundWords(address, sendSats)}` : why };
}
