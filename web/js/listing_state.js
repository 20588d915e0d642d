// Where a listing stands, from what the server tells of its task and its newest cycle.
import { defaultsOf, fieldOf, matters } from "./config_shape.js";

const NONE_IS_ZERO = ["priceSats", "minPriceSats", "minMargin"];

/** The form's values of a stored config, or of a new one. */
export function valuesOf(config = defaultsOf("autolist"), tags = []) {
  const values = { ...Object.fromEntries(Object.keys(defaultsOf("autolist")).map((name) => [name, config[name]])), tags };
  for (const name of NONE_IS_ZERO) values[name] ||= null;
  return values;
}

const sent = (values, name) => (NONE_IS_ZERO.includes(name) ? values[name] ?? 0 : values[name]);

/** The body of a new task. A cost that is not written is left out: then it is that of the purchase, where one is known. */
export function bodyOf(values) {
  const names = Object.keys(values).filter((name) => name !== "costSats" || values.costSats !== null);
  return Object.fromEntries(names.map((name) => [name, sent(values, name)]));
}

/** What of the values differs from what is stored. */
export function changeOf(values, base) {
  const names = Object.keys(values).filter((name) => JSON.stringify(values[name]) !== JSON.stringify(base[name]));
  return Object.fromEntries(names.map((name) => [name, sent(values, name)]));
}

/** Whether the price is, or will be, a multiple of the reference. */
export const multiplies = (values) => values.priceMode === "percent" || values.priceSchedule.some((step) => "pricePercent" in step);

/** Fields that the form shows for these values: others cannot show what is wrong with them. */
export const drawnFields = (values) => Object.keys(values).filter((field) => isDrawn(field, values));

function isDrawn(name, values) {
  if (name.startsWith("trait")) return multiplies(values) && values.reference === "traitFloor";
  if (name === "reference") return multiplies(values);
  const field = fieldOf(name, "autolist");
  return name === "allowBelowReference" || !field || matters(field, values);
}

/** Whether the price could follow the market down without a limit. */
export const hasNoLeast = (values) => values.priceMode !== "fixed" && !values.minPriceSats && values.costSats === null;

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
