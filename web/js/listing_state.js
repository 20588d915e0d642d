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

/** The code that says what a cycle decided: its reason, or what came of it where that is not a listing. */
export const codeOf = ({ planned, fate } = {}) => (fate && fate !== "listed" ? fate : planned?.reason || null);

/** Cycles with the same decision and price, newest first: [{code, price, fault, from, to, count, isDry}]. */
export function groupsOf(cycles) {
  const groups = [];
  for (const { time, error, detail } of [...cycles].reverse()) {
    const fault = detail?.faults?.[0]?.code || (error ? "other" : null);
    const one = { code: codeOf(detail), price: detail?.planned?.priceSats ?? null, fault, error, isDry: Boolean(detail?.dryRun) };
    const last = groups.at(-1);
    if (last && ["code", "price", "fault", "isDry"].every((name) => last[name] === one[name])) {
      Object.assign(last, { from: time, count: last.count + 1 });
    } else {
      groups.push({ ...one, from: time, to: time, count: 1 });
    }
  }
  return groups;
}
