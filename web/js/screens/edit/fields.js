// The form's fields in their groups. `kind` says how one is drawn (inputs.js), `when` for which configs it means anything.

const isRune = (config) => config.type === "rune";
const isItem = (config) => config.type !== "rune";
const outbids = (config) => config.outbidEnabled;

/** Fields that every task is about; range, name and marketplace are drawn by themselves above them. */
export const MAIN = [
  { name: "quantityMode", kind: "choice", options: ["quantity", "sats"], when: (config) => isRune(config) && config.bidMode === "percent" },
  { name: "quantity", kind: "quantity", when: (config) => isRune(config) && config.quantityMode === "quantity" },
  { name: "satsPerOrder", kind: "sats", when: (config) => isRune(config) && config.quantityMode === "sats" },
  { name: "bidCount", kind: "count", when: (config) => !config.bidLevels },
  { name: "hardcapSats", kind: "sats" },
  { name: "maxBidTotal", kind: "sats", isNoneAt0: true },
  { name: "bidExpiryMinutes", kind: "count", unit: "minutes", isOptional: true },
  { name: "outbidEnabled", kind: "check" },
];

export const GROUPS = [
  { name: "outbid", fields: [
    { name: "outbidMode", kind: "choice", options: ["fixed", "percent"], when: outbids },
    { name: "outbidAmount", kind: "sats", when: (config) => outbids(config) && config.outbidMode === "fixed" },
    { name: "outbidPercent", kind: "fraction", when: (config) => outbids(config) && config.outbidMode === "percent" },
    { name: "onlyBidIfHighest", kind: "check" },
    { name: "ignoreAddresses", kind: "lines" },
  ] },
  { name: "ladder", fields: [
    { name: "ladderShape", kind: "choice", options: ["even", "geometric", "top"], when: (config) => !config.bidLevels },
    { name: "bidLevels", kind: "levels" },
  ] },
  { name: "trait", when: isItem, fields: [
    { name: "bidType", kind: "choice", options: ["collection", "trait"] },
    { name: "traitType", kind: "text", when: (config) => config.bidType === "trait" },
    { name: "traitValue", kind: "text", when: (config) => config.bidType === "trait" },
  ] },
  { name: "vwap", when: isRune, fields: [
    { name: "useVwap", kind: "check" },
    { name: "depthSats", kind: "sats", when: (config) => config.useVwap },
  ] },
  { name: "guards", fields: [
    { name: "pauseAfterFillSeconds", kind: "count", unit: "seconds" },
    { name: "maxFills", kind: "count", isNoneAt0: true },
    { name: "maxFillsPerDay", kind: "count", isNoneAt0: true },
    { name: "spendCapSats", kind: "sats", isNoneAt0: true },
    { name: "spendCapPerDaySats", kind: "sats", isNoneAt0: true },
    { name: "onlyWhileFloorBetween", kind: "between" },
    { name: "pauseOnFloorDrop", kind: "drop" },
    { name: "activeHours", kind: "hours" },
  ] },
  { name: "moves", fields: [
    { name: "updateBidEnabled", kind: "check" },
    { name: "updateTolerance", kind: "fraction", isOptional: true },
    { name: "keepWithinGap", kind: "fraction" },
    { name: "minAgeSeconds", kind: "count", unit: "seconds", isOptional: true },
    { name: "replaceMode", kind: "choice", options: ["auto", "breakFirst", "makeFirst"] },
    { name: "loopSeconds", kind: "count", unit: "seconds", isOptional: true },
    { name: "cancelOnStop", kind: "check" },
  ] },
  { name: "fill", when: isItem, fields: [
    { name: "deliverTo", kind: "choice", options: ["ordinalsAddress", "vault"] },
    { name: "onFill", kind: "onFill" },
  ] },
  { name: "more", fields: [
    { name: "budgetId", kind: "budget" },
    { name: "tags", kind: "tags" },
    { name: "feeRate", kind: "fee" },
    { name: "quantity", kind: "quantity", when: (config) => isItem(config) && config.quantity !== 1 },
    { name: "dryRun", kind: "check" },
  ] },
];

/** Fields of the auto-list task that is made of each fill. */
export const LISTING = [
  { name: "priceMode", kind: "choice", options: ["percent", "undercut", "fixed"] },
  { name: "pricePercent", kind: "fraction", when: (config) => config.priceMode === "percent" },
  { name: "priceSats", kind: "sats", when: (config) => config.priceMode === "fixed" },
  { name: "undercutSats", kind: "sats", when: (config) => config.priceMode === "undercut" },
  { name: "reference", kind: "choice", options: ["floor", "traitFloor", "purchase", "lastSale"], when: (config) => config.priceMode === "percent" },
  { name: "traitType", kind: "text", when: (config) => config.reference === "traitFloor" },
  { name: "traitValue", kind: "text", when: (config) => config.reference === "traitFloor" },
  { name: "minPriceSats", kind: "sats", isNoneAt0: true },
  { name: "minMargin", kind: "fraction" },
  { name: "allowBelowReference", kind: "check", when: (config) => config.priceMode === "percent" },
  { name: "priceSchedule", kind: "schedule" },
  { name: "loopSeconds", kind: "count", unit: "seconds", isOptional: true },
  { name: "ignoreAddresses", kind: "lines" },
  { name: "dryRun", kind: "check" },
];

/** Name, range and marketplace: drawn by themselves. */
const OWN = [
  { name: "slug", kind: "text" },
  { name: "type", kind: "choice", options: ["ordinals", "rune"] },
  { name: "venue", kind: "text" },
  { name: "bidMode", kind: "choice", options: ["percent", "fixed"] },
  { name: "bidPercentLow", kind: "fraction" },
  { name: "bidPercentHigh", kind: "fraction" },
  { name: "bidFixedLow", kind: "sats" },
  { name: "bidFixedHigh", kind: "sats" },
];

/** Every field by its name. */
export const FIELDS = new Map([...OWN, ...MAIN, ...GROUPS.flatMap((group) => group.fields)].map((field) => [field.name, field]));
