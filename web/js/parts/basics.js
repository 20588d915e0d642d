// Small parts of many screens: an icon, an amount, a text to copy, a table, pages of it, a box that knows its width.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, withQuery } from "../api.js";
import { NONE, money, short, unit, unitName } from "../format.js";
import { html, t } from "../page.js";
import { Empty, Refused, Skeleton } from "./states.js";
import { Term } from "./term.js";

const PATHS = {
  overview: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  bids: "M4 5h16v3.500H4zM4 10.250h11v3.500H4zM4 15.500h6V19H4z",
  listings: "M3 11.500V4a1 1 0 0 1 1-1h7.500L21 12.500 12.500 21zM7.500 9a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
  wallet: "M4 6.500A2.500 2.500 0 0 1 6.500 4H18v3h2.500v13H6.500A2.500 2.500 0 0 1 4 17.500zM16.500 15a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
  history: "M11 7h2v4.500l3.500 2-1 1.700L11 12.600zM12 3a9 9 0 1 1-8.900 10.400h2.100A7 7 0 1 0 7 7.100L9.500 9.500H3V3l2.600 2.600A9 9 0 0 1 12 3z",
  venues: "M5 4h14l2 6a3 3 0 0 1-2 3v7H5v-7a3 3 0 0 1-2-3zM7 14v4h10v-4z",
  settings: "M4 6h9v2H4zM17 6h3v2h-3zM14 4h2v6h-2zM4 16h3v2H4zM11 16h9v2h-9zM8 14h2v6H8zM4 11h16v2H4z",
  admin: "M12 2 20 5v6c0 5-3.400 9-8 11-4.600-2-8-6-8-11V5zM11 7v6h2V7zM11 15v2h2v-2z",
  more: "M5 10.500a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3zM12 10.500a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3zM19 10.500a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3z",
  play: "M7 5v14l12-7z",
  stop: "M6 6h12v12H6z",
  edit: "M4 16.500V20h3.500L18 9.500 14.500 6zM16 4.500 19.500 8l1-1a1.500 1.500 0 0 0 0-2L19 3.500a1.500 1.500 0 0 0-2 0z",
  alert: "M12 3 1.500 21h21zM11 10v5h2v-5zM11 17v2h2v-2z",
  back: "M14.500 5 16 6.500 10.500 12l5.500 5.500-1.500 1.500L7.500 12z",
  copy: "M8 3h11v13H8zM5 7v14h11v-2H7V7z",
  search: "M10.500 4a6.500 6.500 0 1 1-4.600 11.100A6.500 6.500 0 0 1 10.500 4zm0 2a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zM15 16.400l1.400-1.400 4.600 4.600-1.400 1.400z",
  star: "m12 3 2.700 6.100 6.600.600-5 4.400 1.500 6.500L12 17.200l-5.800 3.400 1.500-6.500-5-4.400 6.600-.600z",
  close: "M6.400 5 12 10.600 17.600 5 19 6.400 13.400 12l5.600 5.600-1.400 1.400L12 13.400 6.400 19 5 17.600 10.600 12 5 6.400z",
  external: "M5 5h6v2H7v10h10v-4h2v6H5zM13 5h6v6h-2V8.400l-6.300 6.300-1.400-1.400L15.600 7H13z",
  trash: "M9 3h6l1 2h4v2H4V5h4zM6 9h12l-1 12H7z",
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
  help: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM11 16v2h2v-2zM12 6.500c-2 0-3.500 1.300-3.500 3.300h2c0-.900.600-1.500 1.500-1.500s1.500.600 1.500 1.400c0 1.300-2.500 1.500-2.500 4.300h2c0-1.800 2.500-2 2.500-4.400 0-1.800-1.500-3.100-3.500-3.100z",
};

export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path fill-rule="evenodd" d=${PATHS[name]} /></svg>`;

export const Logo = () => html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
  <rect x="3" y="5" width="26" height="6" rx="3" /><rect x="3" y="13" width="18" height="6" rx="3" opacity="0.8" />
  <rect x="3" y="21" width="10" height="6" rx="3" opacity="0.6" /></svg>`;

/** Gives `blob` to the person as a file. */
export function download(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Lines of a log, with their end in sight. */
export function Lines({ lines, label }) {
  const box = useRef(null);
  useEffect(() => void (box.current.scrollTop = box.current.scrollHeight), [lines]);
  return html`<pre class="log" tabindex="0" role="region" aria-label=${label} ref=${box}>${lines.join("\n")}</pre>`;
}

/** An amount; `named` says its unit, which stands once for each card or column. */
export function Money({ value, named = false }) {
  const text = money(value);
  if (unit.value !== "btc" || text === NONE) return html`<span class="num">${text}${named && html` <u>${unitName()}</u>`}</span>`;
  // Eight decimals, so that a column lines up; what says nothing is dim.
  const [, digits, zeros] = /^(.*?)(\.?0*)$/.exec(text);
  return html`<span class="num">${digits}<span class="dim">${zeros}</span>${named && html` <u>BTC</u>`}</span>`;
}

export const UnitSwitch = ({ label }) => html`<button class="chip" aria-label=${label}
  onClick=${() => (unit.value = unit.value === "btc" ? "sats" : "btc")}>${unitName()}</button>`;

export function Copyable({ text, head = 10, tail = 8, name = "" }) {
  const [isCopied, setCopied] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const box = useRef(null);
  useEffect(() => void (isWhole && getSelection().selectAllChildren(box.current)), [isWhole]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return setWhole(true); // over plain HTTP browsers lend no clipboard: all of it is shown and selected
    }
    setCopied(true);
    return setTimeout(() => setCopied(false), 2000);
  };
  return html`<span class="copyable"><code ref=${box} title=${text}>${isWhole ? text : short(text, head, tail)}</code>
    <button class="plain" aria-label=${`${t("copy")} ${name}`.trim()} onClick=${copy}><${Icon} name="copy" />${isCopied && html`<em role="status">${t("copied")}</em>`}</button></span>`;
}

/** `columns`: [{name, cell(row), term?, isNumber?, isWide?}], `term` of the glossary; `rows` with a key each by `keyOf`. */
export const Table = ({ label, columns, rows, keyOf, caption }) => html`<div class="table" tabindex="0" role="region" aria-label=${t("table.rows", { label })}><table>
  ${caption && html`<caption>${caption}</caption>`}
  <thead><tr>${columns.map((each) => html`<th key=${each.name} scope="col" class=${each.isNumber ? "number-cell" : ""}>${each.name || html`<span class="sr">${t("table.acts")}</span>`}${each.term && html`<${Term} of=${each.term} />`}</th>`)}</tr></thead>
  <tbody>${rows.map((row) => html`<tr key=${keyOf(row)}>${columns.map((each) => html`<td key=${each.name} data-name=${each.name}
    class=${each.isNumber ? "number-cell" : ""}>${each.cell(row)}</td>`)}</tr>`)}</tbody></table></div>`;

export function Sized({ children, name }) {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => box.current && setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return html`<div class=${name} ref=${box}>${width > 0 && children(width)}</div>`;
}

const PAGE = 50;

/** Reads pages of `path` as they are wanted: {rows, more, isLoading, refusal, again}. `goesOn`: the name of the next page. */
export function usePages(path, name, query, wants, goesOn = "before") {
  const [state, setState] = useState({ rows: null, next: null, refusal: null, isLoading: false });
  const turn = useRef(0);
  const read = async (from) => {
    const mine = (turn.current += 1); // an answer to an older wish is not shown
    const set = (change) => turn.current === mine && setState(change);
    set((old) => ({ ...old, isLoading: true, refusal: null }));
    try {
      const page = await get(withQuery(path, { ...query, limit: PAGE, [goesOn]: from }));
      set((old) => ({ rows: from ? [...(old.rows || []), ...page[name]] : page[name], next: page.next, refusal: null, isLoading: false }));
    } catch (refusal) {
      set((old) => ({ ...old, refusal, isLoading: false }));
    }
  };
  useEffect(() => void read(""), wants);
  return { ...state, more: state.next === null ? null : () => read(state.next), again: () => read("") };
}

export function Pages({ from, none, children }) {
  if (from.refusal && !from.rows) return html`<div class="panel-body"><${Refused} refusal=${from.refusal} again=${from.again} /></div>`;
  if (!from.rows) return html`<div class="panel-body"><${Skeleton} rows=${4} tall=${44} /></div>`;
  if (!from.rows.length) return html`<${Empty}>${none}</${Empty}>`;
  return html`${children(from.rows)}
    ${from.refusal && html`<${Refused} refusal=${from.refusal} again=${from.more} />`}
    ${from.more && html`<div class="panel-body more-rows"><button class="button" disabled=${from.isLoading} onClick=${from.more}>${t("word.more")}</button></div>`}`;
}

/**
 * Whether a field of the form holds what cannot be read; goes to the first such field. Such a value counts as none, and
 * none may mean all, or no limit.
 */
export function isFaulty(form) {
  const field = form.querySelector("[data-unread]");
  field?.focus();
  return field !== null;
}
