// The two pictures of a task as tables: for who cannot see them, and for who wants the numbers.
import { html } from "../../html.js";
import { clock, iso, quantity } from "../../format.js";
import { t } from "../../texts.js";
import { Price, ladderRows, rungWords } from "../../parts/ladder.js";
import { Empty } from "../../parts/states.js";
import { Table } from "../../parts/table.js";

export const NumbersSwitch = ({ isOn, onChange }) => html`<button class="button small" aria-pressed=${isOn} onClick=${() => onChange(!isOn)}>${t(isOn ? "numbers.hide" : "numbers.show")}</button>`;

const MOST_ROWS = 120;

export function LadderNumbers({ picture }) {
  const columns = [
    { name: t("numbers.what"), cell: (row) => (row.rung ? html`<b class=${row.rung.isLive ? "own-text" : ""}>${row.rung.isLive ? t("numbers.own", { why: rungWords(row.rung) }) : rungWords(row.rung)}</b>` : t(`numbers.${row.kind}`)) },
    { name: t("numbers.price"), isNumber: true, cell: (row) => html`<${Price} value=${row.price} isRune=${picture.isRune} />` },
    { name: t("numbers.quantity"), isNumber: true, cell: (row) => quantity(row.quantity) },
    { name: t("numbers.rank"), isNumber: true, cell: ({ rung }) => (rung?.rank ? `#${rung.rank}` : "") },
  ];
  return html`<div class="scrolls"><${Table} label=${t("numbers.label", { name: t("ladder.title") })} columns=${columns} rows=${ladderRows(picture).slice(0, MOST_ROWS)} keyOf=${(row) => row.key} /></div>`;
}

export function TimeNumbers({ columns: past, isRune, onPick }) {
  const rows = past.time.map((time, i) => ({ time, ...Object.fromEntries(["floor", "reference", "top", "low"].map((name) => [name, past[name][i]])) }));
  const known = rows.filter((row) => row.floor !== null || row.reference !== null || row.top !== null).reverse().slice(0, MOST_ROWS);
  if (!known.length) return html`<${Empty}>${t("numbers.empty")}</${Empty}>`;
  const price = (name) => ({ name: t(`numbers.${name}`), isNumber: true, cell: (row) => html`<${Price} value=${row[name]} isRune=${isRune} />` });
  const columns = [
    { name: t("numbers.time"), cell: (row) => html`<button class="plain link" title=${iso(row.time)} onClick=${() => onPick(row.time)}>${clock(row.time)}</button>` },
    price("floor"), price("reference"), price("top"), price("low"),
  ];
  return html`<div class="scrolls"><${Table} label=${t("numbers.label", { name: t("time.title") })} columns=${columns} rows=${known} keyOf=${(row) => row.time} /></div>`;
}
