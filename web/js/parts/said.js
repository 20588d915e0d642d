// What a cycle did, as tags: what matters most first, and few of them.
import { html, t } from "../page.js";
import { MARKS, markOf, reasonOf } from "../texts/reasons.js";

const MOST = 4;
const ORDER = ["fill", "fault", "stop", "limit", "wait", "do", "keep"];
const QUIET_MARKS = new Set(["cold_start"]);

/** The tags of a cycle of either kind: [{kind, words, why}], the weightiest first. */
export function tagsOf(cycle) {
  const detail = cycle?.detail;
  if (!detail) return [];
  const found = detail.rungs ? bidding(detail) : listing(detail);
  found.push(...unread(detail));
  return found.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
}

function bidding({ rungs, bids = [], cancelled = [], filled = [], marks = [] }) {
  const codes = rungs.map((each) => (each.fate && each.fate !== "placed" ? each.fate : each.reason));
  const whys = new Map(bids.map((each) => [each.order, each.reason]));
  const gone = cancelled.map((id) => whys.get(id) || "no_rung");
  return [
    ...(filled.length ? [{ kind: "fill", words: t("said.filled", { count: filled.length }), why: t("said.filled.why") }] : []),
    ...counted(codes),
    ...counted(gone).map((each) => ({ ...each, words: t("said.gone", each), kind: each.kind === "stop" ? "stop" : "keep" })),
    ...marks.filter((mark) => !QUIET_MARKS.has(mark) && MARKS[mark]).map((mark) => ({ kind: "limit", words: markOf(mark).title, why: markOf(mark).why })),
  ];
}

function listing({ planned, fate }) {
  const code = fate && fate !== "listed" ? fate : planned?.reason;
  return code ? counted([code]) : [];
}

/** The rows that the cycle could not read, as one tag; what was read is in its title. */
function unread({ unreadRows = {} }) {
  const kinds = Object.entries(unreadRows);
  const count = kinds.reduce((sum, [, rows]) => sum + rows, 0);
  if (!count) return [];
  return [{ kind: "limit", words: t("said.unread", { count }), why: t("said.unread.why", { kinds: kinds.map(([kind, rows]) => t("said.unread.kind", { kind, rows })).join(", ") }) }];
}

function counted(codes) {
  const counts = new Map();
  for (const code of codes) counts.set(code, (counts.get(code) || 0) + 1);
  return [...counts].map(([code, count]) => {
    const { title, why, kind } = reasonOf(code);
    return { kind, words: count > 1 ? `${count} × ${title}` : title, why };
  });
}

export const Tag = ({ kind, words, why }) => html`<span class=${`tag ${kind}`} title=${why}>${kind === "fill" && "★ "}${words}</span>`;

/** At most four tags, then how many more there are, which are in its title. `cycle` is null where none ran, undefined unread. */
export function Said({ cycle }) {
  if (cycle === undefined) return null;
  if (cycle === null) return html`<span class="dim">${t("said.none")}</span>`;
  const tags = tagsOf(cycle);
  const rest = tags.length > MOST + 1 ? tags.slice(MOST) : [];
  return html`${tags.slice(0, tags.length - rest.length).map((each) => html`<${Tag} key=${each.words} ...${each} />`)}
    ${rest.length > 0 && html`<span class="tag" title=${rest.map((each) => each.words).join(", ")}>+${rest.length}</span>`}`;
}
