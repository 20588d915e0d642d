// A bidding task's config as the server fills it in, and what of it is sent.
import { FIELDS } from "./fields.js";

/** Every field of a config with its value where nothing was given. */
export const DEFAULTS = {
  slug: "",
  type: "ordinals",
  bidMode: "percent",
  bidPercentLow: 0.15,
  bidPercentHigh: 0.75,
  bidFixedLow: 10_000,
  bidFixedHigh: 50_000,
  bidCount: 5,
  hardcapSats: 0,
  maxBidTotal: 0,
  bidExpiryMinutes: null,
  loopSeconds: null,
  outbidEnabled: false,
  outbidMode: "fixed",
  outbidAmount: 1000,
  outbidPercent: 0.01,
  updateBidEnabled: true,
  onlyBidIfHighest: false,
  bidType: "collection",
  traitType: "",
  traitValue: "",
  quantity: 1,
  quantityMode: "quantity",
  satsPerOrder: 0,
  useVwap: false,
  depthSats: 1_000_000,
  feeRate: "halfHourFee",
  cancelOnStop: true,
  maxFills: 0,
  spendCapSats: 0,
  dryRun: false,
  updateTolerance: null,
  keepWithinGap: 0.25,
  minAgeSeconds: null,
  replaceMode: "auto",
  bidLevels: null,
  ladderShape: "even",
  pauseAfterFillSeconds: 60,
  maxFillsPerDay: 0,
  spendCapPerDaySats: 0,
  onlyWhileFloorBetween: null,
  pauseOnFloorDrop: null,
  activeHours: null,
  ignoreAddresses: [],
  deliverTo: "ordinalsAddress",
  onFill: null,
  budgetId: null,
};

/** What belongs to the task beside its config. */
const BESIDE = { venue: "", tags: [] };

/** Defaults of the auto-list task that is made of a fill. */
export const LISTING_DEFAULTS = {
  priceMode: "percent",
  pricePercent: 1.05,
  priceSats: 0,
  undercutSats: 1000,
  minPriceSats: 0,
  minMargin: 0,
  reference: "floor",
  allowBelowReference: false,
  traitType: "",
  traitValue: "",
  loopSeconds: null,
  dryRun: false,
  priceSchedule: [],
  ignoreAddresses: [],
};

const MODES = ["slug", "type", "bidMode"];
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The form's values of a new task, or of one that is there. */
export const valuesOf = (task) =>
  task ? { ...DEFAULTS, ...task.config, venue: task.venue, tags: task.tags } : { ...DEFAULTS, ...BESIDE };

/** Names of the fields in which two forms' values differ. */
export const changed = (values, base) => Object.keys(base).filter((name) => !isSame(values[name], base[name]));

/** The fields that are sent: of a task what differs from `base`, of a new one (`base` is null) what is no default. */
export function bodyOf(values, base) {
  const names = changed(values, base || valuesOf(null));
  const sent = base ? names.filter((name) => name !== "venue") : [...new Set([...MODES, ...names])];
  // The levels say how many bids there are.
  const wanted = sent.filter((name) => name !== "bidCount" || !values.bidLevels);
  return Object.fromEntries(wanted.map((name) => [name, name === "tags" ? values.tags.map((each) => each.trim()).filter(Boolean) : values[name]]));
}

/** Numbers in an address are those of JSON, whatever the locale. */
const TAKES = { sats: isWhole, count: isWhole, fraction: Number.isFinite, quantity: Number.isFinite };

function isWhole(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

/** What an address of the page names of the fields, such as ?bidPercentHigh=0.8; a number that is none is a fault of its field. */
export function asked(query) {
  const found = {};
  for (const [name, text] of Object.entries(query)) {
    if (!(name in DEFAULTS) && !(name in BESIDE)) continue;
    const usual = name in DEFAULTS ? DEFAULTS[name] : BESIDE[name];
    found[name] = typeof usual === "string" && name !== "feeRate" ? text : read(text);
    const takes = TAKES[FIELDS.get(name)?.kind];
    if (takes && found[name] !== null && !takes(found[name])) found[name] = { unread: text };
    if (found[name] === undefined) delete found[name];
  }
  return found;
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return /^[A-Za-z]+$/.test(text) ? text : undefined;
  }
}
