// What stands where an answer will, is missing, or is refused.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../texts.js";

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

const sentence = (words) => words[0].toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".");

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
  if (told.length) return told.map(sentence).join(" ");
  return t([401, 404, 500].includes(status) ? `refusal.${status}` : "refusal.other");
}

/** Why something is not shown, with a way to ask again; after a 429 only once that is allowed. */
export function Refused({ refusal, again, isRead = true }) {
  const [left, setLeft] = useState(refusal.retryAfterS || 0);
  useEffect(() => setLeft(refusal.retryAfterS || 0), [refusal]);
  useEffect(() => {
    if (left <= 0) return undefined;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
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
