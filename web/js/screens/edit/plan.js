// The plan for what the form says, asked again 120 ms after each change; what a save would change, and the buttons.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { call, get, withQuery } from "../../api.js";
import { amount } from "../../format.js";
import { faultsOf } from "../../parts/field.js";
import { now } from "../../store.js";
import { frameOf, sumOf } from "./plan_view.js";
import { changeWords } from "./words.js";

const CALM_MS = 120;
const NAME_CALM_MS = 400;
const OLD_MS = 30_000;

/** A refusal's words at their fields; null where it is about no field. */
export function atFields(refusal) {
  if (refusal.status === 400 && refusal.details.length) return faultsOf(refusal.details);
  return refusal.status === 404 ? { slug: refusal.message } : null;
}

/**
 * Returns {plan, key, values, at, faults, refusal, isAsking, ask}: the newest plan with the key of the body it is of, what is
 * wrong with the body's fields, or why there is no plan; `values` are those of the plan, `at` its time in the server's seconds.
 * `ask` asks at once and answers the plan, or throws the refusal.
 */
export function usePlan(body, values) {
  const key = body && JSON.stringify(body);
  const [state, setState] = useState({ plan: null, key: null, values: null, at: 0, faults: {}, refusal: null, isAsking: false });
  const [turn, setTurn] = useState(0);
  const under = useRef(null);
  const ask = async (asked = body) => {
    under.current?.abort();
    const abort = new AbortController();
    under.current = abort;
    setState((old) => ({ ...old, isAsking: true }));
    try {
      const plan = await call("POST", "/tasks/preview", asked, { abort: abort.signal });
      setState({ plan, key: JSON.stringify(asked), values, at: now.peek(), faults: {}, refusal: null, isAsking: false });
      return plan;
    } catch (refusal) {
      if (!abort.signal.aborted) {
        const faults = refusal.status === undefined ? null : atFields(refusal);
        setState((old) => ({ ...old, faults: faults || {}, refusal: faults ? null : refusal, isAsking: false }));
      }
      throw refusal;
    } finally {
      if (under.current === abort) under.current = null;
    }
  };
  // What is under way is of this moment, too, and may be what a save waits for.
  const askAgain = () => under.current || setTurn((old) => old + 1);
  useEffect(() => {
    if (!key) return undefined;
    const timer = setTimeout(() => under.current || ask().catch(() => {}), CALM_MS);
    const again = setInterval(() => document.visibilityState === "visible" && askAgain(), OLD_MS);
    return () => {
      clearTimeout(timer);
      clearInterval(again);
      under.current?.abort();
      under.current = null;
    };
  }, [key, turn]);
  // A limit of the server's ends by itself.
  useEffect(() => {
    if (!state.refusal?.retryAfterS) return undefined;
    const timer = setTimeout(askAgain, state.refusal.retryAfterS * 1000);
    return () => clearTimeout(timer);
  }, [state.refusal]);
  return { ...state, ask };
}

/**
 * What is known of a name's market: {floor, listed, book, refusal}; read when the name is, not with every change. A pasted
 * name, such as an address of its page, gets its plain form by `set` once the server has read it.
 */
export function useMarket(values, set) {
  const { slug, type, venue, bidType } = values;
  const trait = bidType === "trait" && values.traitType && values.traitValue ? [values.traitType, values.traitValue] : [];
  const [found, setFound] = useState({ of: "", floor: null, listed: null, book: null, refusal: null });
  const of = slug.trim() ? [type, slug.trim(), venue, ...trait].join(" ") : "";
  useEffect(() => {
    if (!of || found.of === of) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      const asked = { slug: slug.trim(), type, venue };
      try {
        const market = await get(withQuery("/tasks/floor", asked), { abort: abort.signal });
        setFound({ of, floor: market.floorPrice, listed: market.listedCount, book: null, refusal: null });
        const book = await get(withQuery("/market/book", { ...asked, traitType: trait[0], traitValue: trait[1] }), { abort: abort.signal });
        if (abort.signal.aborted) return;
        setFound((old) => (old.of === of ? { ...old, of: [type, book.slug, venue, ...trait].join(" "), book } : old));
        if (book.slug !== slug) set({ slug: book.slug });
      } catch (refusal) {
        if (!abort.signal.aborted) setFound((old) => (old.of === of ? old : { of, floor: null, listed: null, book: null, refusal }));
      }
    }, NAME_CALM_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [of]);
  return found.of === of ? found : { of, floor: null, listed: null, book: null, refusal: null };
}

/** `words`: why the last save was refused, or null; `save(starts)` saves, and starts the task where it shall. */
export function Save({ task, draft, base, plan, market, words, faulty, isBusy, isBarred, save }) {
  const sum = plan.plan && sumOf(frameOf(plan.plan, plan.values, market));
  const isRunning = task?.isRunning;
  const isChanged = task && draft.isDirty;
  const button = (starts, isFirst) => html`<button type="button" class=${`button ${isFirst ? "primary" : ""}`} onClick=${() => save(starts)}
    disabled=${isBusy || isBarred || (task !== null && !starts && !draft.isDirty)}>${t(isBusy ? "edit.busy" : starts ? (draft.isDirty || !task ? "edit.save_start" : "word.start") : "word.save")}</button>`;
  return html`${(isChanged || words) && html`<div class="edit-end">
      ${isChanged && html`<div class="changes"><h2>${t("edit.changes", { count: draft.changes.length })}</h2><ul>${changeWords(draft.changes, draft.values, base).map(([name, label, before, after]) => html`<li key=${name}>
        <b>${label}</b> <s>${before}</s> → ${after}</li>`)}</ul></div>`}
      ${words && html`<p class="note bad" role="alert">${words}</p>`}</div>`}
    <div class="edit-bar"><p class="edit-sum" role="status">${faulty ? t("edit.sum.faulty", { count: faulty }) : sum
      ? html`<b>${amount(sum.total)}</b> ${t("edit.sum", { bids: sum.bids })}${isRunning && html`<span>${t("edit.live", { cancels: plan.plan.cancels.length, placed: sum.placed })}</span>`}`
      : t("edit.sum.none")}</p>
      <div class="edit-acts">${isRunning ? button(false, true) : html`${button(false, false)}${button(true, true)}`}</div></div>`;
}
