// All bidding tasks: found by their words, state, kind and tag, and many handled at once.
import { computed } from "@preact/signals";
import { html } from "../html.js";
import { unitName } from "../format.js";
import { setQuery } from "../router.js";
import { taskIds, tasks } from "../store.js";
import { TaskRow } from "../task_row.js";
import { t } from "../texts.js";
import "../texts/bids.js";
import { stateOf } from "../parts/state.js";
import { Empty, Skeleton } from "../parts/states.js";
import { TaskHeads } from "../parts/task_row.js";
import { Bulk, ChooseBox } from "./bids/bulk.js";

const STATES = ["", "fault", "on", "held", "dry", "off"];
const TYPES = ["", "ordinals", "rune"];
const plain = (text) => text.toLowerCase().replace(/[•\s_-]/g, "");

const byName = (a, b) => a.slug.localeCompare(b.slug);
const SORTS = {
  look: (a, b) => Number(Boolean(b.lastError)) - Number(Boolean(a.lastError)) || Number(b.isRunning) - Number(a.isRunning) || byName(a, b),
  name: byName,
  new: (a, b) => b.id - a.id,
  fill: (a, b) => (b.fills.last || "").localeCompare(a.fills.last || "") || byName(a, b),
};

const allTags = computed(() => [...new Set((tasks.value || []).flatMap((task) => task.tags))].sort());

/** Tasks that fit the query {q, state, type, tag, sort}, in its order. */
function found(query) {
  const words = plain(query.q || "");
  const fits = (task) =>
    (!words || plain([task.slug, task.config.traitType, task.config.traitValue, ...task.tags].join(" ")).includes(words)) &&
    (!query.state || stateOf(task)[0] === query.state) &&
    (!query.type || task.type === query.type) &&
    (!query.tag || task.tags.includes(query.tag));
  return tasks.value.filter(fits).sort(SORTS[query.sort] || SORTS.look);
}

export default function Bids({ query }) {
  const all = taskIds.value;
  if (!all) return html`<div class="page"><h1>${t("bids.title")}</h1><${Skeleton} rows=${6} tall=${84} /></div>`;
  const shown = found(query);
  return html`<div class="page"><div class="page-head"><h1>${t("bids.title")}<span class="count">${t("bids.count", { shown: shown.length, all: all.length })}</span></h1>
      <div class="acts"><a class="button primary" href="#/new">${t("bids.new")}</a></div></div>
    ${!all.length ? html`<section class="panel"><${Empty} title=${t("bids.none")} action=${html`<a class="button primary" href="#/new">${t("bids.new")}</a>`}>${t("bids.none.do")}</${Empty}></section>`
      : html`<${Filters} query=${query} /><section class="panel bids" aria-label=${t("bids.title")}><${Bulk} shown=${shown} />
        ${shown.length ? html`<${TaskHeads} unit=${unitName()} /><ul class=${`task-rows ${shown.length > 30 ? "long" : ""}`}>${shown.map(({ id }) => html`<${TaskRow} key=${id} id=${id} Lead=${ChooseBox} />`)}</ul>`
          : html`<${Empty} action=${html`<button class="button" onClick=${() => setQuery({ q: "", state: "", type: "", tag: "" })}>${t("bids.nothing.do")}</button>`}>${t("bids.nothing")}</${Empty}>`}</section>`}</div>`;
}

function Filters({ query }) {
  const words = (prefix) => (each) => [each, each ? t(`${prefix}.${each}`) : t("bids.any")];
  return html`<div class="filters" role="search">
    <label class="field find"><span>${t("bids.find")}</span><input type="search" autocomplete="off" spellcheck="false" placeholder=${t("bids.find.hint")} value=${query.q || ""} onInput=${(event) => setQuery({ q: event.target.value })} /></label>
    <${Pick} label=${t("bids.state")} name="state" query=${query} options=${STATES.map(words("bids.state"))} />
    <${Pick} label=${t("bids.type")} name="type" query=${query} options=${TYPES.map(words("bids.type"))} />
    ${allTags.value.length > 0 && html`<${Pick} label=${t("bids.tag")} name="tag" query=${query} options=${[["", t("bids.any")], ...allTags.value.map((tag) => [tag, tag])]} />`}
    <${Pick} label=${t("bids.sort")} name="sort" query=${query} options=${Object.keys(SORTS).map((each) => [each, t(`bids.sort.${each}`)])} /></div>`;
}

const Pick = ({ label, name, query, options }) => html`<label class="field"><span>${label}</span>
  <select value=${query[name] || options[0][0]} onChange=${(event) => setQuery({ [name]: event.target.value })}>
    ${options.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === (query[name] || options[0][0])}>${words}</option>`)}</select></label>`;
