// A listing's settings in words, and the end of its log.
import { useMemo } from "preact/hooks";
import { html, t } from "../../page.js";
import { get } from "../../api.js";
import { Empty, Loaded, useLoad } from "../../parts/states.js";
import { amount, clock, iso, money, percent, unitName } from "../../format.js";
import { LISTING_GROUPS, groupOf, readShapes } from "../../config_shape.js";
import { drawnFields, valuesOf } from "../../listing_state.js";
import { PriceChart, columnsOf } from "../../parts/price_chart.js";
import { setQuery } from "../../router.js";
import { now, venues } from "../../store.js";
import { Segments } from "../../parts/field.js";
import { Lines, Table } from "../../parts/basics.js";
import { valueWords } from "../edit/words.js";
import "../../texts/edit.js";
import "../../texts/listing_form.js";

/** The way to the price, in one line. */
export function priceWords(config) {
  if (config.priceMode === "fixed") return t("listing.by.fixed", { price: amount(config.priceSats) });
  if (config.priceMode === "undercut") return t("listing.by.undercut", { sats: amount(config.undercutSats) });
  return t("listing.by.percent", { share: percent(config.pricePercent), reference: referenceWords(config) });
}

const referenceWords = (config) =>
  config.reference === "traitFloor" ? t("listing.reference.traitFloor", { type: config.traitType, value: config.traitValue }) : t(`listing.reference.${config.reference}`);

function costWords(sats, source, none) {
  const cost = sats === null ? none : amount(sats);
  return source === "fill" || source === "claimed" ? t(`listing.cost.${source}`, { cost }) : cost;
}

/** [label, words] of all settings that matter in this config. */
function settingsOf({ config, venue, tags, costSource }) {
  const values = valuesOf(config);
  const words = ({ name }) => (name === "costSats" ? costWords(config.costSats, costSource, t("word.none")) : valueWords(name, values[name], config, "autolist"));
  const fields = LISTING_GROUPS.flatMap((group) => groupOf(group, "autolist")).filter(({ name }) => drawnFields(config).includes(name));
  return [
    ...fields.map((field) => [field.label, words(field)]),
    [t("sell.venue"), venues.value?.find((each) => each.name === venue)?.title || venue],
    [t("sell.tags"), tags.length ? tags.join(", ") : t("word.none")],
  ];
}

export const RANGES = { "1h": 3600, "6h": 21_600, "1d": 86_400, "1w": 604_800 };
const MOST_ROWS = 120;

export function Past({ task, from, range, asNumbers }) {
  return html`<section class="panel" aria-labelledby="past-title"><header class="panel-head"><h2 id="past-title">${t("chart.title")}</h2>
      <div class="listing-acts"><${Segments} label=${t("chart.range")} value=${range} options=${Object.keys(RANGES).map((each) => [each, t(`range.${each}`)])} onChange=${(value) => setQuery({ range: value })} />
        <button class="button" aria-pressed=${asNumbers} onClick=${() => setQuery({ numbers: asNumbers ? "" : "1" })}>${t(asNumbers ? "word.as_a_picture" : "word.as_numbers")}</button></div></header>
    <${Loaded} from=${from} rows=${1} tall=${260}>${(series) => (isDrawable(series)
      ? html`<${Drawn} task=${task} series=${series} range=${range} asNumbers=${asNumbers} />`
      : html`<${Empty}>${t("chart.none")}</${Empty}>`)}</${Loaded}></section>`;
}

const isDrawable = ({ price, floor }) => [...price, ...floor].some((each) => each !== null);

function Drawn({ task, series, range, asNumbers }) {
  const lowest = task.listing?.lowestOutstanding ?? null;
  const [columns, from, to] = useMemo(() => {
    const end = now.peek();
    return [columnsOf(series, lowest, task.isRunning ? end : null, series.step === "hour" ? 9000 : Math.max(3 * (task.config.loopSeconds || 30), 300)), Math.max(end - RANGES[range], series.time[0] - 60), end];
  }, [series, lowest, range]);
  const price = columns[1].findLast((each) => each !== null) ?? null;
  const floor = columns[2].findLast((each) => each !== null) ?? null;
  const words = t("chart.words", { price: amount(price), floor: amount(floor), lowest: lowest === null ? null : amount(lowest), from: clock(from, to) });
  if (asNumbers) return html`<${Rows} series=${series} />`;
  return html`<p class="listing-legend"><span><i class="own" />${t("chart.price")}</span><span><i class="floor" />${t("chart.floor")}</span><span><i class="least" />${t("chart.least")}</span>
      ${lowest !== null && html`<span><i class="lowest" />${t("chart.lowest", { price: money(lowest) })}</span>`}<u>${unitName()}</u></p>
    <div class="listing-chart"><${PriceChart} columns=${columns} from=${from} to=${to} label=${words} /></div>`;
}

function Rows({ series }) {
  const rows = series.time.map((time, i) => ({ time, price: series.price[i], floor: series.floor[i], least: series.guard[i] })).reverse().slice(0, MOST_ROWS);
  const column = (name) => ({ name: t(`chart.${name}`), isNumber: true, cell: (row) => money(row[name] === null ? null : Number(row[name])) });
  return html`<div class="listing-rows"><${Table} label=${t("chart.numbers.title")} rows=${rows} keyOf=${(row) => row.time}
    columns=${[{ name: t("word.time"), cell: (row) => html`<time title=${iso(row.time)}>${clock(row.time)}</time>` }, column("price"), column("floor"), column("least")]} /></div>`;
}

const LINES = 200;
const TABS = { settings: Settings, log: Log };

export function Tabs({ task, query }) {
  const tab = query.tab in TABS ? query.tab : "settings";
  return html`<section class="panel" aria-label=${t("listing.tabs")}><header class="panel-head"><${Segments} label=${t("listing.tabs")} value=${tab}
      options=${Object.keys(TABS).map((each) => [each, t(`listing.tab.${each}`)])} onChange=${(value) => setQuery({ tab: value === "settings" ? "" : value })} /></header>
    <${TABS[tab]} key=${tab} task=${task} /></section>`;
}

function Settings({ task }) {
  const shapes = useLoad(readShapes);
  return html`<${Loaded} from=${shapes} rows=${1} tall=${240}>${() => html`<dl class="facts panel-body">${settingsOf(task).map(([label, words]) => html`<dt key=${label}>${label}</dt><dd><bdi>${words}</bdi></dd>`)}</dl>`}</${Loaded}>`;
}

function Log({ task }) {
  // A cycle writes lines: they are read again after each.
  const load = useLoad((abort) => get(`/autolist/${task.id}/log?lines=${LINES}`, { abort }).then((answer) => answer.lines), [task.id, task.lastCycle?.time], task.id);
  return html`<${Loaded} from=${load} rows=${1} tall=${200}>${(lines) => (lines.length ? html`<${Lines} lines=${lines} label=${t("listing.tab.log")} />` : html`<${Empty}>${t("listing.log.none")}</${Empty}>`)}</${Loaded}>`;
}
