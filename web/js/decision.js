// What a task decided at one moment, joined from what the server tells of it: the bids that stood by the ledger, the
// cycle by the journal, and the cycle's record, which knows what became of each rung. Nothing in it needs a browser.
import { secondsOf } from "./format.js";

/**
 * One side without the user's own: [{price, quantity, orders}], the best first; null where it is unknown. `own` is a
 * quantity, which says nothing of how many orders it is.
 */
export function othersOf(side) {
  if (!side) return null;
  return side.levels
    .map((level) => ({
      price: Number(level.unitPrice),
      quantity: Number(level.quantity) - Number(level.own),
      orders: level.orders - level.ownOrders,
    }))
    .filter((level) => level.orders > 0);
}

const CYCLE_S = 180; // a cycle's record is written at its end: at most so long after the decision

const numberOf = (value) => (value === null || value === undefined ? null : Number(value));

/** The price of one item or token, or null where the quantity is not known. */
export const unitOf = (price, quantity) => (price > 0 && Number(quantity) > 0 ? price / Number(quantity) : null);

/** Items or tokens of each bid by the config, or null where each has its own. */
export function quantityOf(config) {
  if (config.type !== "rune") return 1;
  return config.quantityMode === "quantity" ? Number(config.quantity) : null;
}

/** Both sides, the moment they were read, and why one is unknown. */
export const bookOf = (book) => ({
  asks: othersOf(book?.asks),
  bids: othersOf(book?.bids),
  bidsUnknown: book?.bidsUnknown || null,
  takenAt: secondsOf(book?.bids?.takenAt || book?.asks?.takenAt),
});

/** {low, high, cap} of one item or token, null where they are not known. */
function rangeOf(config, reference) {
  const each = quantityOf(config);
  const cap = each && config.hardcapSats ? config.hardcapSats / each : null;
  const levels = config.bidLevels?.map((level) => level.at);
  if (config.bidMode === "fixed") {
    const [low, high] = levels ? [Math.min(...levels), Math.max(...levels)] : [config.bidFixedLow, config.bidFixedHigh];
    return each ? { low: low / each, high: high / each, cap } : { low: null, high: null, cap };
  }
  const [low, high] = levels ? [Math.min(...levels), Math.max(...levels)] : [config.bidPercentLow, config.bidPercentHigh];
  return reference ? { low: reference * low, high: reference * high, cap } : { low: null, high: null, cap };
}

/** The record of the cycle that began at `time`: the first that was written from then on. */
const recordOf = (records, time) =>
  (time && records?.find((each) => each.time >= Math.floor(time) && each.time - time < CYCLE_S)) || null;

/** Bids by their order, as the cycles up to a record knew them: a filled one stands in those before it. */
function bidsIn(records, record) {
  const until = record ? records.indexOf(record) + 1 : 0;
  return new Map((records || []).slice(0, until).flatMap((each) => each.detail?.bids || []).map((bid) => [bid.order, bid]));
}

/** The rungs of a decision with all that is known of each, in their order. */
function notesOf(cycle, record) {
  const recorded = record?.detail?.rungs?.map((note) => ({ ...note, price: note.priceSats }));
  if (!recorded) return cycle?.rungs || [];
  return recorded.map((note) => {
    const planned = cycle?.rungs?.find((each) => each.rung === note.rung);
    return { ...planned, ...note, quantity: note.quantity ?? planned?.quantity };
  });
}

/** The order that a rung has become, by its number, else by its price. */
function orderOf(note, orders, taken, since) {
  const named = orders.get(note.placedOrder) || orders.get(note.order);
  if (named || note.order || note.placedOrder) return named || null;
  if (note.reason !== "place" && note.reason !== "renew") return null;
  const isIt = (order) => !taken.has(order.id) && order.price === note.price && secondsOf(order.createdAt) >= since;
  return [...orders.values()].find(isIt) || null;
}

/** A bid on the market, or on its way there. `isNow`: its state is that of the moment, not of a later one. */
function liveRung(order, note, isNow, doomed, reference) {
  const unit = unitOf(order.price, order.quantity);
  const state = isNow ? order.state : "live";
  return {
    key: `order ${order.id}`,
    order: order.id,
    price: order.price,
    quantity: Number(order.quantity),
    unit,
    share: reference && unit ? unit / reference : null,
    isLive: true,
    isLeaving: state === "cancelling",
    reason: doomed.get(order.id) || note?.reason || order.reason || (state === "live" ? "placed" : "in_flight"),
    detail: note?.detail || "",
    rank: order.rank,
    expires: secondsOf(order.expiresAt),
    isDry: order.dryRun,
  };
}

function emptyRung(note, each, reference) {
  const quantity = numberOf(note.quantity) ?? each;
  const unit = unitOf(note.price, quantity);
  return {
    key: `rung ${note.rung}`,
    price: note.price,
    quantity,
    unit,
    share: reference && unit ? unit / reference : null,
    isLive: false,
    reason: note.fate && note.fate !== "placed" ? note.fate : note.reason,
    detail: note.detail || "",
  };
}

/**
 * The decision in force at a moment. `moment` is the answer of /api/tasks/:id/at, `records` the task's cycles, oldest
 * first. Rungs come highest first: bids that stand, and rungs without one with the reason why.
 */
export function decisionOf(task, moment, records, isNow) {
  const cycle = moment?.cycle || null;
  const time = secondsOf(cycle?.time);
  const record = recordOf(records, time);
  const config = cycle?.config || task.config;
  const reference = numberOf(cycle?.reference);
  const book = bookOf(cycle?.book);
  const doomed = new Map((cycle?.cancels || []).map((cancel) => [cancel.order, cancel.reason]));
  const standing = (moment?.orders || []).filter((order) => !isNow || order.state !== "closed");
  const orders = new Map(standing.map((order) => [order.id, order]));
  const taken = new Map();
  const empty = [];
  const notes = notesOf(cycle, record);
  const unpriced = new Map();
  for (const note of notes) {
    const order = orderOf(note, orders, taken, time - 5);
    if (order) taken.set(order.id, note);
    // A bid that ended since is neither here nor missing: the next cycle says what takes its place.
    else if (note.fate === "placed" || note.reason === "kept") continue;
    else if (note.price > 0) empty.push(emptyRung(note, quantityOf(config), reference));
    else unpriced.set(note.reason, { reason: note.reason, detail: note.detail, count: (unpriced.get(note.reason)?.count || 0) + 1 });
  }
  const live = standing.map((order) => liveRung(order, taken.get(order.id), isNow, doomed, reference));
  const known = bidsIn(records, record);
  const gone = record?.detail?.cancelled
    ? record.detail.cancelled.map((id) => ({ order: id, price: known.get(id)?.priceSats, reason: known.get(id)?.reason || "no_rung" }))
    : (cycle?.cancels || []).filter((cancel) => !orders.has(cancel.order));
  const newest = records?.findLast((each) => each.time <= (isNow ? Infinity : secondsOf(moment?.time)));
  return {
    time,
    config,
    isRune: config.type === "rune",
    reference,
    rawReference: numberOf(cycle?.rawReference),
    floor: book.asks?.[0]?.price ?? null,
    ...rangeOf(config, reference),
    book,
    marks: cycle?.marks || [],
    restraint: cycle?.restraint || null,
    hold: cycle?.hold || null,
    balance: cycle?.balance ?? null,
    feeReserve: cycle?.feeReserve ?? null,
    fund: record?.detail?.seen?.fundedAt ? { address: record.detail.seen.fundedAt, missing: record.detail.seen.missingSats } : null,
    signed: record?.detail?.signed || [],
    rungs: [...live, ...empty].sort((a, b) => (b.unit ?? b.price) - (a.unit ?? a.price)),
    planned: notes.length,
    unpriced: [...unpriced.values()],
    cancelled: gone.map((each) => ({ ...each, unit: unitOf(each.price, quantityOf(config)) })),
    filled: (record?.detail?.filled || []).map(({ order }) => ({ order, price: known.get(order)?.priceSats, unit: unitOf(known.get(order)?.priceSats, quantityOf(config)) })),
    faults: newest?.detail?.faults || [],
    errors: newest?.detail?.errors || [],
    isDry: Boolean(config.dryRun),
    unknown: moment?.cycleUnknown || null,
  };
}
