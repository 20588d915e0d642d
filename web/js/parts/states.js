// What stands where an answer will, is missing, or is refused.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t, withLabels } from "../page.js";
import { call } from "../api.js";
import { place } from "../router.js";
import { leaving } from "../store.js";

/**
 * Runs `read(abort)` now and whenever one of `wants` changes. Returns {value, refusal, isLoading, again, set}. What is read
 * of the task with the id `task` stays as it is while that is being deleted: it may be gone before the page knows.
 */
export function useLoad(read, wants = [], task = null) {
  const [state, setState] = useState({ value: null, refusal: null, isLoading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const isLeaving = leaving.value.has(task);
  useEffect(() => {
    if (isLeaving) return undefined;
    const abort = new AbortController();
    setState((old) => ({ ...old, refusal: null, isLoading: true }));
    latest.current(abort.signal).then(
      (value) => abort.signal.aborted || setState({ value, refusal: null, isLoading: false }),
      (refusal) => abort.signal.aborted || setState((old) => ({ ...old, refusal, isLoading: false })),
    );
    return () => abort.abort();
  }, [...wants, turn, isLeaving]);
  return { ...state, again: () => setTurn((old) => old + 1), set: (value) => setState({ value, refusal: null, isLoading: false }) };
}

/** One act at a time: {isBusy, run}; a second click while one is under way does nothing. */
export function useAct() {
  const [isBusy, setBusy] = useState(false);
  const under = useRef(false);
  const run = async (act) => {
    if (under.current) return undefined;
    endTrouble();
    under.current = true;
    setBusy(true);
    try {
      return await act();
    } finally {
      under.current = false;
      setBusy(false);
    }
  };
  return { isBusy, run };
}

const shown = signal(null);
const STAYS_MS = 6000;
let timer = 0;

/** Says something; `undo` is what the button does, if there is one. */
export function toast(words, { undo, isBad = false } = {}) {
  clearTimeout(timer);
  shown.value = { words, undo, isBad };
  timer = setTimeout(() => (shown.value = null), isBad ? 2 * STAYS_MS : STAYS_MS);
}

/** An error is over once the person tries again or goes elsewhere. */
function endTrouble() {
  if (shown.peek()?.isBad) shown.value = null;
}

export function Toast() {
  const said = shown.value;
  const end = () => (shown.value = null);
  return html`<div class="toasts" role="status" aria-live="polite">${said && html`<div class=${`toast ${said.isBad ? "bad" : ""}`}>
    <span>${said.words}</span>
    ${said.undo && html`<button class="button" onClick=${() => (end(), said.undo())}>${t("undo")}</button>`}
    <button class="plain" aria-label=${t("close")} onClick=${end}>×</button></div>`}</div>`;
}

const asked = signal(null);

function end(answer) {
  const question = asked.peek();
  asked.value = null;
  question?.resolve(answer);
}

// Leaving a screen does not agree to what it asked.
let path = place.peek().path;
place.subscribe((next) => {
  if (next.path !== path) (end(false), endTrouble());
  path = next.path;
});

/**
 * Asks before something that cannot be taken back; resolves to whether it shall be done.
 * `lines` say what happens, with its numbers; one that is a function is told anew whenever a signal that it reads changes.
 * `type` is a text that must be typed first.
 */
export function confirmed({ title, lines, act, type = null, isDanger = true }) {
  end(false); // nobody can answer the one before any more
  return new Promise((resolve) => {
    asked.value = { title, lines, act, type, isDanger, resolve };
  });
}

/** A dialog. A press outside closes it, except the second press of the double click that opened it. */
export function Dialog({ title, onClose, children, wide = false }) {
  const box = useRef(null);
  const isPressedBeside = useRef(false);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog class=${wide ? "wide" : ""} ref=${box} aria-label=${title} onCancel=${(event) => (event.preventDefault(), onClose())}
    onPointerDown=${(event) => (isPressedBeside.current = event.target === box.current)}
    onClick=${(event) => event.target === box.current && isPressedBeside.current && event.detail < 2 && onClose()}>
    <div class="dialog-body"><h2>${title}</h2>${children}</div></dialog>`;
}

export function Confirmations() {
  const question = asked.value;
  const [typed, setTyped] = useState("");
  useEffect(() => setTyped(""), [question]);
  if (!question) return null;
  const isReady = question.type === null || typed.trim() === question.type;
  return html`<${Dialog} title=${question.title} onClose=${() => end(false)}>
    ${question.lines.filter(Boolean).map((line) => html`<p>${typeof line === "function" ? line() : line}</p>`)}
    ${question.type !== null && html`<label class="field"><span>${t("dialog.type", { text: question.type })}</span>
      <input autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>`}
    <div class="dialog-acts"><button class="button" autofocus onClick=${() => end(false)}>${t("cancel")}</button>
      <button class=${`button ${question.isDanger ? "danger" : "primary"}`} disabled=${!isReady} onClick=${() => end(true)}>${question.act}</button></div>
  </${Dialog}>`;
}

/** Grey boxes of the final size; nothing at all for the first 150 ms, so that a quick answer does not flicker. */
export function Skeleton({ rows = 3, tall = 64 }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class="skeletons" aria-busy="true" aria-live="polite"><span class="sr">${t("loading")}</span>
    ${Array.from({ length: rows }, (_, i) => html`<div key=${i} class=${isSlow ? "skeleton" : ""} style=${{ height: `${tall}px` }} />`)}</div>`;
}

/** One sentence, and the one thing to do. */
export const Empty = ({ title, children, action }) => html`<div class="empty">
  ${title && html`<b>${title}</b>`}<p>${children}</p>${action}</div>`;

export const sentence = (words) => words[0].toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".");

/** The words of a refusal: the server's own, else those of its status. `isRead`: nothing was to be changed. */
export function wordsOf(refusal, { isRead = false, isStop = false } = {}) {
  const { status } = refusal;
  if (status === undefined) throw refusal;
  const { error, message, details = [] } = refusal.body || {};
  // A proxy speaks for a server that is away: what became of the call is not known.
  if (status === 0 || (status >= 502 && !error)) return t(isRead ? "refusal.0.read" : "refusal.0");
  if (status === 429) return t("refusal.429", { seconds: refusal.retryAfterS || 1 });
  if (status === 502 || status === 504) return t("refusal.502");
  // Without a place to store it no wish is kept; the answer says what is in force.
  if (status === 503 && isStop && !/database|force/.test(error)) return t("refusal.503.stop");
  const told = details.length ? details : [error, message].filter(Boolean);
  if (told.length) return told.map((each) => sentence(withLabels(each))).join(" ");
  return t([401, 404, 500].includes(status) ? `refusal.${status}` : "refusal.other");
}

/** Says why a call was refused. */
export const showRefusal = (refusal, options) => toast(wordsOf(refusal, options), { isBad: true });

/** Carries out `act`; resolves to its value, or to null once it was said why it is refused. */
export const attempt = (act, options) => act().catch((refusal) => (showRefusal(refusal, options), null));

/** Asks first, and calls `then` once it is deleted. */
export const deleteIfSure = async (path, question, then) => (await confirmed(question)) && call("DELETE", path).then(then, showRefusal);

/** Seconds left of `seconds`, counted down anew for each `since`. */
export function useCountdown(seconds, since) {
  const [left, setLeft] = useState(seconds);
  useEffect(() => setLeft(seconds), [since]);
  useEffect(() => {
    if (left <= 0) return undefined;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return left;
}

/** Why something is not shown, with a way to ask again; after a 429 only once that is allowed. */
export function Refused({ refusal, again, isRead = true }) {
  const left = useCountdown(refusal.retryAfterS || 0, refusal);
  const words = refusal.status === 429 ? t("refusal.429", { seconds: Math.max(left, 0) }) : wordsOf(refusal, { isRead });
  return html`<div class="note bad" role="alert"><p>${words}</p>
    ${again && html`<button class="button" disabled=${left > 0} onClick=${again}>${t("again")}</button>`}</div>`;
}

/** What came of useLoad: a skeleton, a refusal, or the child's drawing of the value; with a refusal before an older one. */
export function Loaded({ from, children, rows, tall }) {
  const refused = from.refusal && html`<${Refused} refusal=${from.refusal} again=${from.again} />`;
  if (from.value === null) return refused || html`<${Skeleton} rows=${rows} tall=${tall} />`;
  return refused ? [refused, children(from.value)] : children(from.value);
}
