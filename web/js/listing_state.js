// Where a listing stands, from what the server tells of its task and its newest cycle.

/** "none", "sale" (on the market, or about to be), "sold" or "off". */
export function standOf({ listing }) {
  if (!listing || (listing.state === "closed" && listing.closeReason === "refused")) return "none";
  if (listing.closeReason === "sold") return "sold";
  return listing.state === "closed" ? "off" : "sale";
}

/** Whether it can be bought for less than is asked for it. */
export const isCheaper = ({ listing }) => Boolean(listing) && listing.lowestOutstanding !== null && (standOf({ listing }) !== "sale" || listing.lowestOutstanding < listing.price);

/** The lowest ask of others that the newest cycle saw; null where it saw none, undefined while no cycle is known. */
export function floorOf(cycles) {
  if (!cycles) return undefined;
  return cycles.findLast((each) => each.detail?.seen)?.detail.seen.lowestAsk ?? null;
}

const OF_PLACE = { spent: "spent", pending: "spend_pending", unknown: "holding_unknown" };

/** The code that says what a cycle decided: its reason, what came of it where that is not a listing, or "sold". */
export function codeOf(detail) {
  const { planned, fate, listing, holding } = detail || {};
  if (planned) return fate && fate !== "listed" ? fate : planned.reason;
  return listing?.closeReason === "sold" ? "sold" : OF_PLACE[holding] || null;
}

/** The price that the newest cycle would ask, for a task on paper; null where none. */
export const paperPriceOf = (cycles) => cycles?.at(-1)?.detail?.planned?.priceSats ?? null;

/** Cycles with the same decision and price, newest first: [{code, price, fault, from, to, count, isDry}]. */
export function groupsOf(cycles) {
  const groups = [];
  for (const { time, error, detail } of [...cycles].reverse()) {
    const fault = detail?.faults?.[0]?.code || (error ? "other" : null);
    const one = { code: codeOf(detail), price: detail?.planned?.priceSats ?? (codeOf(detail) === "sold" ? detail.listing.proceedsSats : null), fault, error, isDry: Boolean(detail?.dryRun) };
    const last = groups.at(-1);
    if (last && ["code", "price", "fault", "isDry"].every((name) => last[name] === one[name])) {
      Object.assign(last, { from: time, count: last.count + 1 });
    } else {
      groups.push({ ...one, from: time, to: time, count: 1 });
    }
  }
  return groups;
}

/** What comes to the seller of a sale at the plan's price; null where no draft tells it. */
export const payoutOf = (plan) => plan.draft?.forms.find((each) => each.form === "plain")?.payout ?? plan.draft?.forms[0]?.payout ?? null;
