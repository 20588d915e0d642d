// What a cycle did, as tags: what matters most first, and few of them.
import { html, t } from "../page.js";
import { MARKS, markOf, reasonOf } from "../texts/reasons.js";

const ORDER = ["fill", "fault", "stop", "limit", "wait", "do", "keep"];
const QUIET_MARKS = new Set(["cold_start"]);

/** The tags of a listing's cycle, or of a bidding task's row: [{kind, words, why}], the weightiest first. */
export function tagsOf(said) {
  if (!said) return [];
  const found = said.rungs ? bidding(said) : listing(said);
  found.push(...unread(said));
  return found.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
}

function bidding({ rungs, gone = {}, filled = 0, marks = [] }) {
  return [
    ...(filled ? [{ kind: "fill", words: t("said.filled", { count: filled }), why: t("said.filled.why") }] : []),
    ...counted(rungs),
    ...counted(gone).map((each) => ({ ...each, words: t("said.gone", each), kind: each.kind === "stop" ? "stop" : "keep" })),
    ...marks.filter((mark) => !QUIET_MARKS.has(mark) && MARKS[mark]).map((mark) => ({ kind: "limit", words: markOf(mark).title, why: markOf(mark).why })),
  ];
}

function listing({ planned, fate }) {
  const code = fate && fate !== "listed" ? fate : planned?.reason;
  return code ? counted({ [code]: 1 }) : [];
}

/** The rows that the cycle could not read, as one tag; what was read is in its title. */
function unread({ unreadRows = {} }) {
  const kinds = Object.entries(unreadRows);
  const count = kinds.reduce((sum, [, rows]) => sum + rows, 0);
  if (!count) return [];
  return [{ kind: "limit", words: t("said.unread", { count }), why: t("said.unread.why", { kinds: kinds.map(([kind, rows]) => t("said.unread.kind", { kind, rows })).join(", ") }) }];
}

function counted(counts) {
  return Object.entries(counts).map(([code, count]) => {
    const { title, why, kind } = reasonOf(code);
    return { kind, words: count > 1 ? `${count} × ${title}` : title, why };
  });
}

export const Tag = ({ kind, words, why }) => html`<span class=${`tag ${kind}`} title=${why}>${kind === "fill" && "★ "}${words}</span>`;

/** A few tags, then how many more there are, which are in its title. `said` is null where no cycle ran, undefined where it is not known yet. */
export function Said({ said, most = 4 }) {
  if (said === undefined) return null;
  if (said === null) return html`<span class="dim">${t("said.none")}</span>`;
  const tags = tagsOf(said);
  const rest = tags.length > most + 1 ? tags.slice(most) : [];
  return html`${tags.slice(0, tags.length - rest.length).map((each) => html`<${Tag} key=${each.words} ...${each} />`)}
    ${rest.length > 0 && html`<span class="tag" title=${rest.map((each) => each.words).join(", ")}>+${rest.length}</span>`}`;
}
