// Lists that come in pages: more of them are asked for by a button.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { get, withQuery } from "../api.js";
import { t } from "../texts.js";
import { Empty, Refused, Skeleton } from "./states.js";

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
    ${from.more && html`<div class="panel-body more-rows"><button class="button" disabled=${from.isLoading} onClick=${from.more}>${t("more.rows")}</button></div>`}`;
}
