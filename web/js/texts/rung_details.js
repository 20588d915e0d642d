// What the detail of a rung adds to its reason.
import { span } from "../format.js";

/** What a rung's detail names: the end that holds its price down, or the ceiling of signatures that is full. */
const DETAILS = {
  raise: "It ranks ahead of the best bid.",
  ask: "The lowest ask holds it down.",
  hardcap: "The hard cap holds it down: raise it, or lower the range.",
  low: "It would fall below the low end.",
  min_bid: "The marketplace takes no bid this low.",
  tick: "Between the ends lies no price that the marketplace takes.",
  thin_book: "The asks hold too little for a VWAP.",
};

const CEILINGS = { task: "This task's signed bids", user: "Your signed bids", installation: "All users' signed bids" };

/**
 * The sentence of a rung's detail, "" for one that says nothing more. `since` is how many seconds ago it was decided: a wait that
 * was named then is shorter by that.
 */
export function detailWords(detail, since = 0) {
  if (/^send /.test(detail)) return `${detail[0].toUpperCase()}${detail.slice(1)}.`;
  const { whose, kept, left } = signingRoom(detail) || {};
  if (!whose) return DETAILS[detail] || "";
  const why = kept ? `${CEILINGS[whose]} leave room only for renewals of open bids.` : `${CEILINGS[whose]} reach their limit.`;
  return left === null ? why : `${why} ${left > since ? `Enough expires in ${span(left - since)}.` : "Enough has expired since."}`;
}

/** What a rung's detail says of the signing limit: {whose, kept, left}, `left` in seconds or null; null of any other detail. */
export function signingRoom(detail) {
  const [, whose, kept, left] = /^(task|user|installation)(, kept for renewals)?(?:, frees in (\d+) s)?$/.exec(detail || "") || [];
  return whose ? { whose, kept: kept !== undefined, left: left === undefined ? null : Number(left) } : null;
}
