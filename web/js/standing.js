// How a task stands in its market, from its newest decision: bids, rungs without one, the bids and asks of others. Prices
// are of an item or a token, as books have them; `sats` are whole orders'.
import { othersOf } from "./decision.js";

/** Reasons of rungs whose slot a bid has, or has until it is gone: they are not drawn as empty. */
const TAKEN = new Set(["kept", "place", "renew", "renew_waits", "min_age", "slot_taken", "in_flight", "cancelling", "expired", "rungs_merged"]);
const OLDEST_BOOK_S = 180;

const byPrice = (a, b) => b.unit - a.unit;

const levelsOf = (side) => othersOf(side)?.map(({ price, orders }) => ({ unit: price, orders })) ?? null;

/**
 * The bids of others, and the ranks of the open orders among them: the decision's where it read them, else those of a book
 * of the last minutes; {rivals: null, ranks: []} where nobody knows.
 */
function othersIn(cycle, open, book, nowS) {
  if (cycle?.book.bids) return { rivals: levelsOf(cycle.book.bids), ranks: open.map((each) => each.rank) };
  const isYoung = book?.bids && nowS - Date.parse(book.bids.takenAt) / 1000 < OLDEST_BOOK_S;
  if (!isYoung) return { rivals: null, ranks: [] };
  const ids = new Set(open.map((each) => each.id));
  return { rivals: levelsOf(book.bids), ranks: book.ranks.filter((each) => ids.has(each.order)).map((each) => each.rank) };
}

function rungsOf(cycle, config, isRune) {
  const known = isRune && config.quantityMode === "quantity" ? Number(config.quantity) : null;
  const quantity = (rung) => (isRune ? Number(rung.quantity) || known : 1);
  return (cycle?.rungs || []).filter(quantity).map((rung) => ({ unit: rung.price / quantity(rung), reason: rung.reason, hasBid: rung.order !== null }));
}

function rangeOf(cycle, config, rungs) {
  if (config.bidMode === "percent" && !config.bidLevels && cycle?.reference) {
    return [cycle.reference * config.bidPercentLow, cycle.reference * config.bidPercentHigh];
  }
  const prices = rungs.map((each) => each.unit);
  return prices.length ? [Math.min(...prices), Math.max(...prices)] : [null, null];
}

/**
 * `moment` is what /api/tasks/:id/at answers, `book` what /api/market/book does, `nowS` the time of now in seconds. Returns
 * null while there is no moment; else {isRune, hasRun, floor, reference, low, high, own, empty, rivals, asks, place, sats}: `place`
 * is the best bid's among all bids, null without a bid or where the bids of others are not known.
 */
export function standingOf(task, moment, book, nowS) {
  if (!moment) return null;
  const { cycle } = moment;
  const isRune = task.type === "rune";
  const rungs = rungsOf(cycle, task.config, isRune);
  const [low, high] = rangeOf(cycle, task.config, rungs);
  const open = moment.orders.filter((each) => each.state !== "closed");
  const own = open.map((each) => ({ id: each.id, unit: each.price / (isRune ? Number(each.quantity) : 1), price: each.price, isSettled: each.state === "live" })).sort(byPrice);
  const { rivals, ranks } = othersIn(cycle, open, book, nowS);
  const known = ranks.filter((rank) => rank !== null);
  const asks = levelsOf(cycle?.book.asks);
  return {
    isRune,
    hasRun: Boolean(cycle),
    floor: asks?.length ? Math.min(...asks.map((each) => each.unit)) : null,
    reference: cycle?.reference ?? null,
    low,
    high,
    own,
    empty: rungs.filter((each) => !each.hasBid && !TAKEN.has(each.reason)),
    rivals,
    asks,
    place: known.length ? Math.min(...known) : null,
    sats: open.reduce((sum, each) => sum + each.price, 0),
  };
}
