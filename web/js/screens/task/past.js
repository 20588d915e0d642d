// What a task's screen reads of the past: samples and bids of a stretch of time, and single moments.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, withQuery } from "../../api.js";
import { useLoad } from "../../load.js";
import { cyclesOf, momentOf } from "../../store.js";
import { RANGES, SHOWS_BIDS_S, boundsOf, columnsOf, gapOf, livesOf } from "../../timeline_shape.js";

const PAGE = 500;
const MOST_PAGES = 4;
const DELAY_MS = 120;
const KEPT_MOMENTS = 200;

const iso = (seconds) => new Date(seconds * 1000).toISOString();

async function readOrders(id, from, abort) {
  const found = [];
  let before = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    // Bids that were made before and lived on are among those that stand at its beginning.
    const answer = await get(withQuery(`/tasks/${id}/orders`, { since: iso(from), limit: PAGE, before }), { abort });
    found.push(...answer.orders);
    before = answer.next;
    if (before === null) break;
  }
  return found;
}

/** A fill as the ledger's order that it was. */
const orderOfFill = (fill) => ({ id: `fill ${fill.id}`, price: fill.price, quantity: fill.quantity, createdAt: fill.bidPlacedAt || fill.filledAt, closedAt: fill.filledAt, closeReason: "filled" });

async function readPast(id, seconds, now, abort) {
  const from = now - seconds;
  const isShort = seconds <= SHOWS_BIDS_S;
  const [series, standing, orders] = await Promise.all([
    get(withQuery(`/tasks/${id}/series`, { from: iso(from) }), { abort }),
    isShort ? get(`/tasks/${id}/at?time=${iso(from)}`, { abort }) : { orders: [] },
    isShort ? readOrders(id, from, abort) : get(withQuery("/fills", { taskId: id, side: "buy", from: iso(from), limit: PAGE }), { abort }).then(({ fills }) => fills.map(orderOfFill)),
  ]);
  return { series, orders: new Map([...standing.orders, ...orders].map((order) => [order.id, order])) };
}

/** Adds the minute of a moment to the samples. */
function withSample(series, sample) {
  if (!sample || sample.step !== series.step) return series;
  const time = Date.parse(sample.time) / 1000;
  const at = series.time.at(-1) === time ? series.time.length - 1 : series.time.length;
  if (at && time < series.time[at - 1]) return series;
  const next = { step: series.step };
  for (const name of Object.keys(series).filter((each) => each !== "step")) next[name] = [...series[name].slice(0, at), name === "time" ? time : sample[name]];
  return next;
}

/** The chart's data for a range, which follows what happens: {from, value, data}, as useLoad and Timeline want them. */
export function useTimeline(task, rangeName, now) {
  const { id } = task;
  const seconds = RANGES[rangeName] || RANGES["1h"];
  const load = useLoad((abort) => readPast(id, seconds, now.peek(), abort), [id, seconds], id);
  const [past, setPast] = useState(null);
  useEffect(() => setPast(load.value && { ...load.value, seconds }), [load.value]);
  const moment = momentOf(id).value;
  useEffect(() => {
    if (!moment || !past || past.seconds !== seconds) return;
    const standing = new Set(moment.orders.map((order) => order.id));
    const ended = [...past.orders.values()].some((order) => order.closedAt === null && !standing.has(order.id));
    const orders = seconds <= SHOWS_BIDS_S ? new Map([...past.orders, ...moment.orders.map((order) => [order.id, order])]) : past.orders;
    setPast({ ...past, series: withSample(past.series, moment.sample), orders });
    // How a bid ended, the ledger says.
    if (ended) get(`/tasks/${id}/orders?limit=100`).then((answer) => setPast((old) => old && { ...old, orders: new Map([...old.orders, ...answer.orders.map((order) => [order.id, order])]) }), () => {});
  }, [moment]);
  const records = cyclesOf(id).value;
  const data = useMemo(() => past && past.seconds === seconds && dataOf(task, past, seconds > 21_600 ? null : records, now.peek()), [past, records, task.config]);
  return { load, data, orders: past?.orders };
}

function dataOf(task, { series, orders, seconds }, records, now) {
  const { config } = task;
  const gap = gapOf(series.step, config.loopSeconds);
  const columns = columnsOf(series, records, now - seconds, now, gap);
  // A young task's hour is not drawn as an empty one.
  const from = Math.min(Math.max(now - seconds, columns.time[0] ?? 0), now - Math.min(seconds, 60));
  const lives = livesOf([...orders.values()], from, now);
  const isPercent = config.bidMode !== "fixed" && !config.bidLevels;
  const range = isPercent ? { low: config.bidPercentLow, high: config.bidPercentHigh } : null;
  return { columns, lives, bounds: boundsOf(columns, lives, from, config), from, to: now, range, hasLives: seconds <= SHOWS_BIDS_S, step: series.step };
}

/** The answer about a moment of the past, or null while it is read: a moment after the pointer came to rest, and once. */
export function useMoment(id, time) {
  const kept = useRef(new Map());
  const [found, setFound] = useState({ time: null, moment: null, refusal: null });
  useEffect(() => {
    if (time === null) return undefined;
    const known = kept.current.get(time);
    if (known) {
      setFound({ time, moment: known, refusal: null });
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const moment = await get(`/tasks/${id}/at?time=${iso(time)}`, { abort: abort.signal });
        if (kept.current.size >= KEPT_MOMENTS) kept.current.delete(kept.current.keys().next().value);
        kept.current.set(time, moment);
        setFound({ time, moment, refusal: null });
      } catch (refusal) {
        if (!abort.signal.aborted) setFound((old) => ({ ...old, time, refusal }));
      }
    }, DELAY_MS);
    return () => (clearTimeout(timer), abort.abort());
  }, [id, time]);
  return time === null ? { moment: null, refusal: null } : found;
}
