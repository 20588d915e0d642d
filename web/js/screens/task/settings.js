// All of a task's settings in words. While a moment of the past is looked at: those of then, and which differ from now.
import { html } from "../../html.js";
import { amount, clock, percent, perToken, secondsOf } from "../../format.js";
import { now } from "../../store.js";
import { t } from "../../texts.js";

const sats = (value) => amount(value);
const none = (value, write) => (value ? write(value) : t("set.none"));
const yes = (value) => t(value ? "set.yes" : "set.no");
const minutes = (value) => t("set.minutes", { minutes: value });
const own = (value, write) => (value === null ? t("set.service") : write(value));
const plain = (value) => String(value);

/** [group, [[field, how it is written, whether it matters in this config], ...]] */
const GROUPS = [
  ["what", [
    ["bidType", (value, config) => (value === "trait" ? t("task.trait", { type: config.traitType, value: config.traitValue }) : t("set.collection"))],
    ["quantityMode", (value, config) => (value === "quantity" ? t("set.quantity", { quantity: config.quantity }) : t("set.sats_each", { sats: sats(config.satsPerOrder) })), (config) => config.type === "rune"],
    ["bidMode", (value) => t(`set.mode.${value}`)],
    ["bidPercentHigh", (value) => percent(value), (config) => config.bidMode !== "fixed"],
    ["bidPercentLow", (value) => percent(value), (config) => config.bidMode !== "fixed"],
    ["bidFixedHigh", sats, (config) => config.bidMode === "fixed"],
    ["bidFixedLow", sats, (config) => config.bidMode === "fixed"],
    ["bidCount", plain],
    ["ladderShape", (value) => t(`set.shape.${value}`), (config) => !config.bidLevels],
    ["bidLevels", (value, config) => value.map((level) => t("set.level", { at: config.bidMode === "fixed" ? sats(level.at) : percent(level.at), count: level.count })).join(", "), (config) => config.bidLevels],
    ["useVwap", (value, config) => (value ? t("set.vwap", { depth: sats(config.depthSats) }) : t("set.no"))],
  ]],
  ["limits", [
    ["hardcapSats", (value) => none(value, sats)],
    ["maxBidTotal", (value) => none(value, sats)],
    ["maxFills", (value) => none(value, plain)],
    ["spendCapSats", (value) => none(value, sats)],
    ["maxFillsPerDay", (value) => none(value, plain)],
    ["spendCapPerDaySats", (value) => none(value, sats)],
    ["budgetId", (value) => none(value, plain)],
  ]],
  ["rivals", [
    ["outbidEnabled", yes],
    ["outbidAmount", (value, config) => (config.outbidMode === "percent" ? percent(config.outbidPercent) : sats(value)), (config) => config.outbidEnabled],
    ["onlyBidIfHighest", yes],
    ["ignoreAddresses", (value) => none(value.length, plain)],
  ]],
  ["life", [
    ["bidExpiryMinutes", (value) => (value ? minutes(value) : t("set.usual_life"))],
    ["loopSeconds", (value) => (value ? t("set.seconds", { seconds: value }) : t("set.adaptive"))],
    ["updateBidEnabled", yes],
    ["updateTolerance", (value) => own(value, percent)],
    ["keepWithinGap", (value) => percent(value)],
    ["minAgeSeconds", (value) => own(value, (seconds) => t("set.seconds", { seconds }))],
    ["replaceMode", (value) => t(`set.replace.${value}`)],
    ["feeRate", (value) => (/^[a-z]/i.test(value) ? t(`set.fee.${value}`) : t("set.fee.rate", { rate: value }))],
  ]],
  ["guards", [
    ["pauseAfterFillSeconds", (value) => none(value, (seconds) => t("set.seconds", { seconds }))],
    ["onlyWhileFloorBetween", (value, config) => none(value, (ends) => t("set.between", { ends: ends.map(config.type === "rune" ? perToken : sats) }))],
    ["pauseOnFloorDrop", (value) => none(value, (drop) => t("set.drop", drop))],
    ["activeHours", (value) => none(value, (hours) => t("set.hours", hours))],
    ["cancelOnStop", (value) => t(value ? "set.cancelled" : "set.left")],
    ["dryRun", yes],
  ]],
  ["after", [
    ["deliverTo", (value) => t(`set.deliver.${value}`)],
    ["onFill", (value) => none(value, () => t("set.listed"))],
  ]],
];

export function Settings({ task, moment, isPast }) {
  const then = isPast && moment?.cycle ? moment.cycle : null;
  const config = then ? then.config : task.config;
  const words = (field, write, of) => (of[field] === undefined ? null : write(of[field], of));
  return html`<div class="panel-body settings">
    <p class="quiet">${then ? t("set.then", { time: clock(secondsOf(then.time), now.peek()) }) : t("set.now")}</p>
    <div class="settings-groups">${GROUPS.map(([group, fields]) => html`<section key=${group}><h3>${t(`set.group.${group}`)}</h3><dl class="facts">${fields
      .filter(([field, , matters]) => config[field] !== undefined && (!matters || matters(config)))
      .map(([field, write]) => {
        const told = words(field, write, config);
        const today = then ? words(field, write, task.config) : told;
        return html`<dt key=${field}>${t(`set.${field}`)}</dt><dd class=${told === today ? "" : "changed"}>${told}${told !== today && html` <span class="quiet">${t("set.today", { value: today })}</span>`}</dd>`;
      })}</dl></section>`)}</div></div>`;
}
