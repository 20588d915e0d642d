// Gain, unrealised gain and open bids over time: a panel with its numbers, and a strip for the overview.
import { computed } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { get, withQuery } from "../api.js";
import { amount, clock, iso, money, unitName } from "../format.js";
import { SPANS, gainShape, gapOf, rowsOf, ticksOf, timesOf } from "../gain_shape.js";
import { setQuery } from "../router.js";
import { now } from "../store.js";
import { indexAt } from "../timeline_shape.js";
import { Money, Sized, Table } from "./basics.js";
import { Segments } from "./field.js";
import { Empty, Loaded, useLoad } from "./states.js";
import "../texts/gain.js";

const TALL = 300;
const TALL_SMALL = 56;
const MOST_ROWS = 200;

const minute = computed(() => Math.floor(now.value / 60));
const plus = (sats) => (sats > 0 ? "+" : "");
const toned = (sats) => (sats > 0 ? "good-text" : sats < 0 ? "bad-text" : "");
const signed = (sats) => (sats === null ? amount(null) : `${plus(sats)}${amount(sats)}`);

/** Reads one of SPANS once a minute: {value: {rows, gap, unknownFees, from, to}, refusal, again}. */
function useGain(span) {
  return useLoad(async (abort) => {
    const to = Math.ceil(now.peek());
    const from = to - SPANS[span];
    const series = await get(withQuery("/pnl/series", { from: new Date(from * 1000).toISOString().replace(".000", "") }), { abort });
    // The picture begins with the first moment of a young history, and ends with the last that the server knows.
    return { rows: rowsOf(series, gapOf(to - from)), gap: gapOf(to - from), unknownFees: series.unknownFees, from: Math.max(from, (series.time[0] ?? from) - 60), to: series.time.at(-1) ?? to };
  }, [span, minute.value]);
}

/** The words of one time; `isLast` is the present. */
function wordsOf(row, isLast) {
  const values = { gained: signed(row.gained), unrealized: signed(row.unrealized), exposure: amount(row.exposure), unknown: row.unknown };
  return t("gain.at", { when: isLast ? t("gain.now") : clock(row.time, now.peek()), ...values });
}

/** `at` is the chosen place among the rows, or null for the last; pointing and keys change it by `onAt`. */
function Picture({ data, at, onAt, width, isSmall = false }) {
  const { rows, from, to } = data;
  const height = isSmall ? TALL_SMALL : TALL;
  const shape = useMemo(() => gainShape(data, width, height, isSmall), [data, width, isSmall]);
  const last = rows.length - 1;
  const place = at === null ? last : Math.min(at, last);
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left - shape.box.left) / (width - shape.box.left - shape.box.right);
    onAt(indexAt(rows.map((row) => row.time), from + share * (to - from)));
  };
  const onKey = (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity, Escape: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = place + steps[event.key];
    onAt(next >= last ? null : Math.max(0, next));
  };
  const { gained, unrealized, time } = rows[place];
  return html`<div class="gain-picture" role="slider" tabindex="0" aria-label=${t("gain.label")} aria-valuemin="0" aria-valuemax=${last} aria-valuenow=${place}
      aria-valuetext=${wordsOf(rows[place], place === last)} onPointerMove=${point} onPointerDown=${point} onPointerLeave=${() => onAt(null)} onKeyDown=${onKey}>
    <svg class="gain" width=${width} height=${height} aria-hidden="true">
      ${!isSmall && html`<${Axes} shape=${shape} data=${data} width=${width} />`}
      <line class="zero" x1=${shape.box.left} x2=${width - shape.box.right} y1=${shape.y(0)} y2=${shape.y(0)} />
      ${!isSmall && html`<path class="area" d=${shape.area} /><path class="exposure" d=${shape.exposure} />`}
      <path class="unrealized" d=${shape.unrealized} /><path class="gained" d=${shape.gained} />
      ${at !== null && html`<line class="mark" x1=${shape.x(time)} x2=${shape.x(time)} y1=${shape.box.top} y2=${shape.base} />`}
      ${unrealized !== null && html`<circle class="unrealized" cx=${shape.x(time)} cy=${shape.y(unrealized)} r="3.500" />`}
      <circle class="gained" cx=${shape.x(time)} cy=${shape.y(gained)} r="4" /></svg></div>`;
}

function Axes({ shape, data: { from, to }, width }) {
  const zone = -60 * new Date(to * 1000).getTimezoneOffset();
  const isShort = to - from <= SPANS["1d"];
  const day = (time) => new Date(time * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const times = timesOf(from, to, Math.max(2, Math.floor(width / 100)), zone);
  const values = shape.least === -1 && shape.most === 1 ? [0] : ticksOf(shape.least, shape.most, 4);
  return html`<g class="axes">${values.map((each) => html`<g key=${each}><line x1=${shape.box.left} x2=${width - shape.box.right} y1=${shape.y(each)} y2=${shape.y(each)} />
      <text class="value" x=${shape.box.left - 8} y=${shape.y(each) + 4}>${money(each)}</text></g>`)}
    ${shape.high > 1 && html`<text class="value" x=${shape.box.left - 8} y=${shape.yExposure(shape.high) + 8}>${money(shape.high)}</text>`}
    <line class="base" x1=${shape.box.left} x2=${width - shape.box.right} y1=${shape.base} y2=${shape.base} />
    ${times.map((time) => html`<text key=${time} class="time" x=${shape.x(time)} y=${shape.base + 18}>${isShort ? clock(time, time).slice(0, 5) : day(time)}</text>`)}</g>`;
}

/** Names of the lines, each with its value at the chosen time. */
function Legend({ data, at }) {
  const { rows } = data;
  const row = rows[at === null ? rows.length - 1 : Math.min(at, rows.length - 1)];
  const entries = [["gained", row.gained, true], ["unrealized", row.unrealized, true], ["exposure", row.exposure, false]];
  return html`<div class="gain-legend">${entries.map(([name, sats, isSigned]) => html`<span key=${name}><svg class="gain" aria-hidden="true"><path class=${name} d="M1 6H21" /></svg>
      <span class="quiet">${t(`gain.${name}`)}</span> <b class=${isSigned ? toned(sats) : ""}>${isSigned && plus(sats)}<${Money} value=${sats} /></b></span>`)}
    <u>${unitName()}</u><time class="quiet" datetime=${iso(row.time)}>${at === null ? t("gain.now") : clock(row.time, now.peek())}</time>
    ${row.unknown > 0 && html`<small class="held-text">${t("gain.unknown", { count: row.unknown })}</small>`}</div>`;
}

function Rows({ data }) {
  const rows = [...data.rows].reverse().slice(0, MOST_ROWS);
  const column = (name, key) => ({ name: t(`gain.${key || name}`), isNumber: true, cell: (row) => html`<${Money} value=${row[name]} />` });
  return html`<div class="gain-rows"><${Table} label=${t("gain.numbers")} rows=${rows} keyOf=${(row) => row.time} columns=${[
    { name: t("word.time"), cell: (row) => html`<time datetime=${iso(row.time)} title=${iso(row.time)}>${clock(row.time, now.peek())}</time>` },
    column("gained"), column("unrealized"), column("exposure"),
    { name: t("gain.items"), isNumber: true, cell: (row) => row.unknown ?? amount(null) }]} /></div>`;
}

/** The whole of it, for the history; the address has what is chosen. */
export function GainPanel({ query }) {
  const span = query.gain in SPANS ? query.gain : "1m";
  const asNumbers = Boolean(query.numbers);
  const [at, setAt] = useState(null);
  const from = useGain(span);
  return html`<section class="panel" aria-labelledby="gain-title"><header class="panel-head"><h2 id="gain-title">${t("gain.title")}</h2>
      <div class="gain-acts"><${Segments} label=${t("gain.span")} value=${span} onChange=${(value) => (setAt(null), setQuery({ gain: value === "1m" ? "" : value }))}
          options=${Object.keys(SPANS).map((each) => [each, t(`gain.span.${each}`)])} />
        <button class="button" aria-pressed=${asNumbers} onClick=${() => setQuery({ numbers: asNumbers ? "" : "1" })}>${t(asNumbers ? "word.as_a_picture" : "word.as_numbers")}</button></div></header>
    <${Loaded} from=${from} rows=${1} tall=${TALL}>${(data) => (!data.rows.length ? html`<${Empty}>${t("gain.none")}</${Empty}>`
      : asNumbers ? html`<${Rows} data=${data} />`
        : html`<${Legend} data=${data} at=${at} /><${Sized} name="gain-box">${(width) => html`<${Picture} data=${data} at=${at} onAt=${setAt} width=${width} />`}</${Sized}>`)}</${Loaded}></section>`;
}

/** The last month in one line, for the overview; nothing before there is something to show. */
export function GainStrip() {
  const [at, setAt] = useState(null);
  const { value } = useGain("1m");
  if (!value?.rows.some((each) => each.gained || each.unrealized)) return null;
  const row = value.rows.at(at ?? -1);
  return html`<section class="panel gain-strip" aria-label=${t("gain.title")}>
    <div class="gain-month"><span class="label">${at === null ? t("gain.month") : clock(row.time, now.peek())}</span><b class=${toned(row.gained)}>${plus(row.gained)}<${Money} value=${row.gained} named /></b>
      ${value.unknownFees > 0 && html`<small class="held-text">${t("gain.fees", { count: value.unknownFees })}</small>`}</div>
    <${Sized} name="gain-box">${(width) => html`<${Picture} data=${value} at=${at} onAt=${setAt} width=${width} isSmall />`}</${Sized}>
    <div class="gain-month"><span class="label">${t("gain.unrealized")}</span><b class=${toned(row.unrealized)}>${plus(row.unrealized)}<${Money} value=${row.unrealized} named=${row.unrealized !== null} /></b>
      ${row.unknown > 0 && html`<small class="held-text">${t("gain.unknown", { count: row.unknown })}</small>`}</div>
    <a class="link" href="#/history">${t("gain.title")}</a></section>`;
}
