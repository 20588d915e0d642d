// What the plan's numbers mean beside the market: prices of one item or token, shares of the reference, warnings.
import { othersOf } from "../../book.js";
import { amount, money, monthOf, percent, perToken } from "../../format.js";
import { t } from "../../texts.js";
import { reasonOf } from "../../texts/reasons.js";

/** Reasons of rungs that have or get a bid. */
const BIDS = new Set(["place", "kept", "renew", "renew_waits", "in_flight"]);
const NEW = new Set(["place", "renew"]);
const SPECIAL_SHARE = 0.05;

/** Items or tokens of a bid at this rung; null where that is not known. */
function quantityOf(rung, values) {
  if (values.type !== "rune") return 1;
  if (values.quantityMode === "quantity") return values.quantity || null;
  return rung.quantity;
}

/** The plan's rungs and its market in prices of one item or token. */
export function frameOf(plan, values, market) {
  const isRune = values.type === "rune";
  const asks = othersOf(plan.book.asks) || [];
  const bids = othersOf(plan.book.bids || market.book?.bids || null);
  const reference = plan.reference === null ? null : Number(plan.reference);
  const raw = plan.rawReference === null ? null : Number(plan.rawReference);
  const per = isRune && values.quantityMode === "quantity" ? values.quantity || 1 : 1;
  const isFixed = values.bidMode === "fixed";
  const low = isFixed ? values.bidFixedLow / per : reference && reference * values.bidPercentLow;
  const high = isFixed ? values.bidFixedHigh / per : reference && reference * values.bidPercentHigh;
  const isInSats = isRune && values.quantityMode === "sats";
  const rungs = plan.rungs.map((rung) => {
    const quantity = quantityOf(rung, values);
    const unit = rung.price === null || !quantity ? null : rung.price / quantity;
    const isBid = BIDS.has(rung.reason);
    return { ...rung, key: rung.rung, unit, isBid, isNew: NEW.has(rung.reason), title: reasonOf(rung.reason).title, share: unit && reference ? percent(unit / reference) : "" };
  });
  return { asks, bids, reference, floor: asks[0]?.price ?? raw, low, high, cap: isInSats ? null : values.hardcapSats / per, rungs, per, show: isRune ? perToken : money };
}

/** Sats of all bids that would stand, and how many they are: new ones, and those that stay. */
export function sumOf(frame) {
  const bids = frame.rungs.filter((rung) => rung.isBid);
  return { bids: bids.length, total: bids.reduce((sum, rung) => sum + (rung.price || 0), 0), placed: bids.filter((rung) => rung.isNew).length };
}

/** Calls a month, and their share of the tightest quota at the marketplace; null where it has none. */
export function callsOf(plan, venue) {
  const { reads, writes } = plan.monthlyCalls;
  const month = venue ? monthOf(venue.limits) : null;
  return { calls: reads + writes, month, share: month && (reads + writes) / month };
}

/** Sentences that name a figure that somebody may not have meant. */
export function warningsOf(plan, frame, values, venue) {
  const found = [];
  const perBid = frame.floor && frame.cap ? frame.cap / frame.floor : 0;
  if (perBid > 1) found.push(t("edit.warn.cap", { times: percent(perBid), cap: amount(values.hardcapSats), floor: amount(frame.floor * frame.per) }));
  const { total, bids } = sumOf(frame);
  if (plan.balance !== null && total > plan.balance && !values.dryRun) found.push(t("edit.warn.balance", { total: amount(total), bids, balance: amount(plan.balance) }));
  const { share, calls } = callsOf(plan, venue);
  if (share > SPECIAL_SHARE) found.push(t("edit.warn.calls", { calls, share: percent(share) }));
  return found;
}
