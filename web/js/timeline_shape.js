// What a chart over time shows, as columns and lines of plain numbers, so that it can be tested anywhere.
import { secondsOf } from "./format.js";
import { unitOf } from "./decision.js";

/** Names of the ranges that can be chosen, in seconds. */
export const RANGES = { "1h": 3600, "6h": 21_600, "1d": 86_400, "1w": 604_800, "1y": 31_536_000 };

/** Longer ones have too many bids to draw each: they show how far they reached, and the fills. */
export const SHOWS_BIDS_S = 86_400;

const numberOf = (value) => (value === null || value === undefined ? null : Number(value));

/** Points of a task's cycles, oldest first: finer than a minute's samples, as far back as they are kept. */
const pointsOfCycles = (records) =>
  (records || []).filter((each) => each.detail?.seen?.reference || each.detail?.seen?.lowestAsk).map((each) => ({
    time: each.time,
    floor: numberOf(each.detail.seen.lowestAsk),
    reference: numberOf(each.detail.seen.reference),
  }));

const pointsOfSeries = (series) =>
  series.time.map((time, i) => ({ time, floor: numberOf(series.floor[i]), reference: numberOf(series.reference[i]), top: numberOf(series.ownTop[i]), low: numberOf(series.ownLow[i]) }));

/**
 * Joins samples and cycles within [from, to] to columns {time, floor, reference, top, low}. Where nothing ran for `gapS`
 * or longer stands a point of nulls, so that no line is drawn over it; the last value holds until `to` if it is so young.
 */
export function columnsOf(series, records, from, to, gapS) {
  const fine = series.step === "minute" ? pointsOfCycles(records) : [];
  const begin = fine[0]?.time ?? Infinity;
  const samples = pointsOfSeries(series);
  for (const point of fine) {
    const minute = samples.find((each) => each.time === point.time - (point.time % 60));
    Object.assign(point, { top: minute?.top ?? null, low: minute?.low ?? null });
  }
  const points = [...samples.filter((each) => each.time < begin), ...fine].filter((each) => each.time >= from - gapS && each.time <= to);
  const last = points.at(-1);
  if (last && to - last.time < gapS && to > last.time) points.push({ ...last, time: to });
  const columns = { time: [], floor: [], reference: [], top: [], low: [] };
  const push = (time, point) => {
    columns.time.push(time);
    for (const name of ["floor", "reference", "top", "low"]) columns[name].push(point?.[name] ?? null);
  };
  points.forEach((point, i) => {
    const before = points[i - 1];
    if (before && point.time - before.time > gapS) push(before.time + Math.min(gapS / 4, 60), null);
    push(point.time, point);
  });
  return columns;
}

/** How long nothing may have been heard of a task before the chart shows a gap. */
export const gapOf = (step, loopSeconds) => (step === "hour" ? 9000 : Math.max(3 * (loopSeconds || 30), 300));

/** Lives of bids that reach into [from, to]: [{from, to, unit, isOpen, isFilled}]. Refused ones never were on the market. */
export function livesOf(orders, from, to) {
  const lives = [];
  for (const order of orders) {
    const closed = secondsOf(order.closedAt);
    const unit = unitOf(order.price, order.quantity);
    if (order.closeReason === "refused" || unit === null || (closed !== null && closed < from)) continue;
    lives.push({ from: secondsOf(order.createdAt), to: closed ?? to, unit, isOpen: closed === null, isFilled: order.closeReason === "filled", id: order.id });
  }
  return lives;
}

/** Lowest and highest price to show, with some room. */
export function boundsOf(columns, lives, from, config) {
  const isPercent = config.bidMode !== "fixed" && !config.bidLevels;
  const lows = isPercent ? columns.reference.map((each) => each && each * config.bidPercentLow) : [];
  const inView = lives.filter((life) => life.to >= from).map((life) => life.unit);
  const prices = [columns.floor, columns.reference, columns.top, columns.low, lows, inView].flat().filter((each) => each > 0);
  if (!prices.length) return [0, 1];
  const min = prices.reduce((a, b) => Math.min(a, b));
  const max = prices.reduce((a, b) => Math.max(a, b));
  const room = (max - min || max) * 0.08;
  return [Math.max(0, min - room), max + room];
}

/** The index of the last time that is not after `time`; the first where all are. */
export function indexAt(times, time) {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (times[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}
