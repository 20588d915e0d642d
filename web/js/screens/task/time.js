// A task's past as a chart: its range stands in the address, and pointing at it chooses the moment of the whole screen.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { get, withQuery } from "../../api.js";
import { Empty, Refused, Skeleton, useLoad } from "../../parts/states.js";
import { clock, iso, quantity } from "../../format.js";
import { setQuery } from "../../router.js";
import { cyclesOf, momentOf, now } from "../../store.js";
import { RANGES, SHOWS_BIDS_S, boundsOf, columnsOf, gapOf, livesOf } from "../../timeline_shape.js";
import { Segments } from "../../parts/field.js";
import { Price, ladderRows, priceWriter, rungWords } from "../../parts/ladder.js";
import { Table } from "../../parts/basics.js";
import { Timeline } from "../../parts/timeline.js";

const PAGE = 500;
const MOST_PAGES = 4;
const DELAY_MS = 120;
const KEPT_MOMENTS = 200;

const isoOf = (seconds) => new Date(seconds * 1000).toISOString();

async function readOrders(id, from, abort) {
  const found = [];
  let before = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    // Bids that were made before and lived on are among those that stand at its beginning.
    const answer = await get(withQuery(`/tasks/${id}/orders`, { since: isoOf(from), limit: PAGE, before }), { abort });
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
    get(withQuery(`/tasks/${id}/series`, { from: isoOf(from) }), { abort }),
    isShort ? get(`/tasks/${id}/at?time=${isoOf(from)}`, { abort }) : { orders: [] },
    isShort ? readOrders(id, from, abort) : get(withQuery("/fills", { taskId: id, side: "buy", from: isoOf(from), limit: PAGE }), { abort }).then(({ fills }) => fills.map(orderOfFill)),
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
function useTimeline(task, rangeName, now) {
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
        const moment = await get(`/tasks/${id}/at?time=${isoOf(time)}`, { abort: abort.signal });
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

export const NumbersSwitch = ({ isOn, onChange }) => html`<button class="button small" aria-pressed=${isOn} onClick=${() => onChange(!isOn)}>${t(isOn ? "word.as_a_picture" : "word.as_numbers")}</button>`;

const MOST_ROWS = 120;

export function LadderNumbers({ picture }) {
  const columns = [
    { name: t("word.what"), cell: (row) => (row.rung ? html`<b class=${row.rung.isLive ? "own-text" : ""}>${row.rung.isLive ? t("numbers.own", { why: rungWords(row.rung) }) : rungWords(row.rung)}</b>` : t(`numbers.${row.kind}`)) },
    { name: t("word.price"), isNumber: true, cell: (row) => html`<${Price} value=${row.price} isRune=${picture.isRune} />` },
    { name: t("word.quantity"), isNumber: true, cell: (row) => quantity(row.quantity) },
    { name: t("numbers.rank"), isNumber: true, cell: ({ rung }) => (rung?.rank ? `#${rung.rank}` : "") },
  ];
  return html`<div class="scrolls"><${Table} label=${t("numbers.label", { name: t("ladder.title") })} columns=${columns} rows=${ladderRows(picture).slice(0, MOST_ROWS)} keyOf=${(row) => row.key} /></div>`;
}

function TimeNumbers({ columns: past, isRune, onPick }) {
  const rows = past.time.map((time, i) => ({ time, ...Object.fromEntries(["floor", "reference", "top", "low"].map((name) => [name, past[name][i]])) }));
  const known = rows.filter((row) => row.floor !== null || row.reference !== null || row.top !== null).reverse().slice(0, MOST_ROWS);
  if (!known.length) return html`<${Empty}>${t("numbers.empty")}</${Empty}>`;
  const price = (name) => ({ name: t(`numbers.${name}`), isNumber: true, cell: (row) => html`<${Price} value=${row[name]} isRune=${isRune} />` });
  const columns = [
    { name: t("word.time"), cell: (row) => html`<button class="plain link" title=${iso(row.time)} onClick=${() => onPick(row.time)}>${clock(row.time)}</button>` },
    price("floor"), price("reference"), price("top"), price("low"),
  ];
  return html`<div class="scrolls"><${Table} label=${t("numbers.label", { name: t("time.title") })} columns=${columns} rows=${known} keyOf=${(row) => row.time} /></div>`;
}

const TALL = 290;

export function Past({ task, query, mark, onPoint, onPick }) {
  const range = query.range in RANGES ? query.range : "1h";
  const [hasNumbers, setNumbers] = useState(false);
  const { load, data } = useTimeline(task, range, now);
  const show = priceWriter(task.type === "rune");
  return html`<section class="panel span" aria-labelledby="time-title">
    <header class="panel-head"><h2 id="time-title">${t("time.title")}</h2>
      <div class="panel-acts">${!hasNumbers && html`<${Legend} hasLives=${data?.hasLives} />`}
        <${Segments} label=${t("time.range")} value=${range} options=${Object.keys(RANGES).map((each) => [each, t(`range.${each}`)])} onChange=${(value) => setQuery({ range: value === "1h" ? "" : value })} />
        <${NumbersSwitch} isOn=${hasNumbers} onChange=${setNumbers} /></div></header>
    ${load.refusal && html`<div class="panel-body"><${Refused} refusal=${load.refusal} again=${load.again} /></div>`}
    ${!data ? !load.refusal && html`<div class="panel-body"><${Skeleton} rows=${1} tall=${TALL} /></div>`
      : hasNumbers ? html`<${TimeNumbers} columns=${data.columns} isRune=${task.type === "rune"} onPick=${onPick} />`
      : !hasPrices(data) ? html`<${Empty}>${t("time.empty")}</${Empty}>`
      : html`<div class="panel-chart"><${Timeline} data=${data} mark=${mark} show=${show} height=${TALL} label=${sentenceOf(task, data, show)} onPoint=${onPoint} onPick=${onPick} /></div>
        <p class="hint">${t("time.hint")}</p>`}
  </section>`;
}

const hasPrices = ({ columns, lives }) => lives.length > 0 || columns.floor.some((each) => each !== null) || columns.reference.some((each) => each !== null);

const Legend = ({ hasLives }) => html`<span class="legend"><span><i class="k-floor" />${t("legend.floor")}</span><span><i class="k-reference" />${t("legend.reference")}</span>
  <span><i class="k-own" />${t("legend.lives")}</span>${hasLives && html`<span><i class="k-band" />${t("legend.range")}</span>`}<span><i class="k-star">★</i>${t("legend.filled")}</span></span>`;

function sentenceOf(task, { columns, lives, from }, show) {
  const floors = columns.floor.filter((each) => each !== null);
  const [low, high] = floors.length ? [floors.reduce((a, b) => Math.min(a, b)), floors.reduce((a, b) => Math.max(a, b))] : [null, null];
  return t("time.sentence", {
    name: task.slug, from: clock(from), floor: show(floors.at(-1)), low: show(low), high: show(high),
    open: lives.filter((life) => life.isOpen).length, filled: lives.filter((life) => life.isFilled).length,
  });
}
