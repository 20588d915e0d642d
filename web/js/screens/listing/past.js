// A listing's price beside the floor over time, as a picture or as numbers.
import { html } from "../../html.js";
import { useMemo } from "preact/hooks";
import { amount, clock, iso, money, unitName } from "../../format.js";
import { columnsOf } from "../../price_columns.js";
import { setQuery } from "../../router.js";
import { now } from "../../store.js";
import { t } from "../../texts.js";
import { Segments } from "../../parts/field.js";
import { PriceChart } from "../../parts/price_chart.js";
import { Empty, Loaded } from "../../parts/states.js";
import { Table } from "../../parts/table.js";

export const RANGES = { "1h": 3600, "6h": 21_600, "1d": 86_400, "1w": 604_800 };
const MOST_ROWS = 120;

export function Past({ task, from, range, asNumbers }) {
  return html`<section class="panel" aria-labelledby="past-title"><header class="panel-head"><h2 id="past-title">${t("chart.title")}</h2>
      <div class="listing-acts"><${Segments} label=${t("chart.range")} value=${range} options=${Object.keys(RANGES).map((each) => [each, t(`chart.range.${each}`)])} onChange=${(value) => setQuery({ range: value })} />
        <button class="button" aria-pressed=${asNumbers} onClick=${() => setQuery({ numbers: asNumbers ? "" : "1" })}>${t(asNumbers ? "chart.picture" : "chart.numbers")}</button></div></header>
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
    columns=${[{ name: t("chart.time"), cell: (row) => html`<time title=${iso(row.time)}>${clock(row.time)}</time>` }, column("price"), column("floor"), column("least")]} /></div>`;
}
