// All bidding tasks: found by their words, state, kind and tag, sorted by any column, and many handled together.
import { computed, signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { html, t } from "../page.js";
import { Refusal, call } from "../api.js";
import { COLUMNS, OTHERS, found, sorted } from "../task_order.js";
import { useRows } from "../rows.js";
import { Dialog, Empty, Skeleton, confirmed, showRefusal, toast, useAct, wordsOf } from "../parts/states.js";
import { setQuery } from "../router.js";
import { dropTasks, leave, link, quietly, readTasks, stay, taskOf, tasks } from "../store.js";
import { Density, TaskTable, entries } from "../parts/task_table.js";
import { Icon } from "../parts/basics.js";
import { ChangeDialog } from "./bids/change.js";
import "../texts/bids.js";

const MOST_IDS = 100;

/**
 * `wishes` are [{ids, change?}]. Returns {done: [id], undone: [{id, status, body}]}. Throws the Refusal of a request that was
 * not taken at all; what was done before it stays done.
 */
export async function act(action, wishes) {
  const results = [];
  for (const { ids, change } of wishes) {
    for (let from = 0; from < ids.length; from += MOST_IDS) {
      const answer = await call("POST", "/tasks/actions", { action, ids: ids.slice(from, from + MOST_IDS), ...(change && { change }) });
      results.push(...answer.results);
    }
  }
  const isDone = (each) => each.status < 400;
  return { done: results.filter(isDone).map((each) => each.id), undone: results.filter((each) => !isDone(each)) };
}

/** Wishes for act(): tasks whose tags become the same go together. */
function changes(list, tagsOf) {
  const groups = new Map();
  for (const task of list) {
    const tags = tagsOf(task.tags);
    if (String(tags) === String(task.tags)) continue;
    const key = JSON.stringify(tags);
    groups.set(key, [...(groups.get(key) || []), task.id]);
  }
  return [...groups].map(([tags, ids]) => ({ ids, change: { tags: JSON.parse(tags) } }));
}

function TagDialog({ list, onClose, onDone }) {
  const [typed, setTyped] = useState("");
  const tag = typed.trim();
  const there = [...new Set(list.flatMap((task) => task.tags))].sort();
  const add = (event) => {
    event.preventDefault();
    if (tag) onDone(changes(list, (tags) => (tags.includes(tag) ? tags : [...tags, tag])));
  };
  return html`<${Dialog} title=${t("bids.tags.title", { count: list.length })} onClose=${onClose}>
    ${there.length ? html`<p class="bulk-tags">${there.map((each) => html`<button key=${each} class="chip" aria-label=${t("bids.tags.take", { tag: each })}
      onClick=${() => onDone(changes(list, (tags) => tags.filter((one) => one !== each)))}><bdi>${each}</bdi><${Icon} name="close" /></button>`)}</p>` : html`<p class="quiet">${t("bids.tags.none")}</p>`}
    <form onSubmit=${add}><label class="field"><span>${t("bids.tags.add")}</span><input autofocus maxlength="40" autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
      <div class="dialog-acts"><button type="button" class="button" onClick=${onClose}>${t("cancel")}</button><button class="button primary" disabled=${!tag}>${t("word.add")}</button></div></form></${Dialog}>`;
}

/** Ids of the chosen tasks. */
export const chosen = signal(new Set());

function choose(ids, isOn) {
  const next = new Set(chosen.peek());
  for (const id of ids) isOn ? next.add(id) : next.delete(id);
  chosen.value = next;
}

const ChooseBox = ({ id }) => html`<input class="choose" type="checkbox" checked=${chosen.value.has(id)} aria-label=${t("bids.choose", { name: taskOf(id).value?.slug })}
  onChange=${(event) => choose([id], event.target.checked)} />`;

const numbers = {
  start(list) {
    const fresh = list.filter((task) => !task.isRunning);
    const real = fresh.filter((task) => !task.config.dryRun);
    return { real: real.length, most: real.reduce((sum, task) => sum + task.config.bidCount, 0), paper: fresh.length - real.length, running: list.length - fresh.length };
  },
  stop(list) {
    const real = list.filter((task) => !task.config.dryRun);
    return { cancel: real.filter((task) => task.config.cancelOnStop).length, stay: real.filter((task) => !task.config.cancelOnStop).length };
  },
};

/** What is asked before each action. */
const QUESTIONS = {
  start(list) {
    const said = numbers.start(list);
    return { lines: ["what", "paper", "running"].map((each) => t(`bids.start.${each}`, said)), isDanger: false };
  },
  stop(list) {
    const said = numbers.stop(list);
    return { lines: [t("bids.stop.cancel", { count: said.cancel }), t("bids.stop.stay", { count: said.stay })] };
  },
  delete: (list) => ({ lines: [t("bids.delete.what")], type: String(list.length) }),
};

function Bulk({ shown }) {
  const [undone, setUndone] = useState([]);
  const [opened, setOpened] = useState(""); // "tags", "change", or no dialog
  const close = () => setOpened("");
  const { isBusy, run } = useAct();
  const here = shown.filter((task) => chosen.value.has(task.id));
  const isOffline = link.value === "offline";
  const carryOut = (action, wishes) => run(async () => {
    setUndone([]);
    const all = wishes.flatMap((each) => each.ids);
    if (action === "delete") leave(all);
    let gone = [];
    try {
      const { done, undone: left } = await act(action, wishes);
      if (action === "delete") dropTasks((gone = done));
      if (done.length) toast(t(`bids.done.${action}`, { count: done.length }));
      setUndone(left.map(({ id, status, body }) => [taskOf(id).peek()?.slug || id, wordsOf(new Refusal(status, body), { isStop: action === "stop" })]));
      choose(done, false);
    } catch (refusal) {
      showRefusal(refusal, { isStop: action === "stop" });
    }
    if (action === "delete") stay(all.filter((id) => !gone.includes(id)));
    quietly(readTasks());
  });
  const ask = async (action) => {
    const question = { title: t(`bids.${action}.title`, { count: here.length }), act: t(`bids.${action}`), ...QUESTIONS[action](here) };
    if (await confirmed(question)) await carryOut(action, [{ ids: here.map((task) => task.id) }]);
  };
  return html`<div class="bulk"><label class="check"><input type="checkbox" checked=${here.length > 0 && here.length === shown.length}
      onChange=${(event) => choose(shown.map((task) => task.id), event.target.checked)} /><span>${t("bids.choose.all")}</span></label>
    <span class=${`quiet ${here.length ? "some" : ""}`} role="status">${here.length ? t("bids.chosen", { count: here.length }) : t("bids.chosen.none")}</span>
    <span class="bulk-acts">${here.length > 0 && ["start", "stop", "delete"].map((action) => html`<button key=${action} class="button" disabled=${isBusy || isOffline} onClick=${() => ask(action)}>
      <${Icon} name=${{ start: "play", stop: "stop", delete: "trash" }[action]} />${t(`bids.${action}`)}</button>`)}
      ${here.length > 0 && ["change", "tags"].map((each) => html`<button key=${each} class="button" disabled=${isBusy || isOffline} onClick=${() => setOpened(each)}>${each === "change" && html`<${Icon} name="edit" />`}${t(each === "tags" ? "word.tags" : "word.edit")}</button>`)}
      <${Density} /></span>
    ${undone.length > 0 && html`<div class="note bad" role="alert"><b>${t("bids.undone", { count: undone.length })}</b>
      <ul>${undone.map(([slug, words]) => html`<li key=${slug}><b><bdi>${slug}</bdi></b> ${words}</li>`)}</ul>
      <button class="button" onClick=${() => setUndone([])}>${t("bids.undone.close")}</button></div>`}
    ${opened === "tags" && html`<${TagDialog} list=${here} onClose=${close} onDone=${(wishes) => (close(), carryOut("change", wishes))} />`}
    ${opened === "change" && html`<${ChangeDialog} list=${here} onClose=${close} onDone=${(change) => (close(), carryOut("change", [{ ids: here.map((task) => task.id), change }]))} />`}</div>`;
}

const STATES = ["", "look", "fault", "held", "empty", "on", "dry", "off"];
const TYPES = ["", "ordinals", "rune"];
const SORTS = ["state", ...Object.keys(COLUMNS).filter((each) => each !== "state"), ...Object.keys(OTHERS)];

const allTags = computed(() => [...new Set((tasks.value || []).flatMap((task) => task.tags))].sort());

export default function Bids({ query }) {
  useRows();
  const all = entries.value;
  if (!all) return html`<div class="page"><h1>${t("word.bids")}</h1><${Skeleton} rows=${12} tall=${30} /></div>`;
  const shown = sorted(found(all, query), query.sort).map(({ task }) => task);
  return html`<div class="page bids-page"><div class="page-head"><h1>${t("word.bids")}<span class="count">${t("bids.count", { shown: shown.length, all: all.length })}</span></h1>
      <div class="acts"><a class="button primary" href="#/new">${t("word.new_task")}</a></div></div>
    ${!all.length ? html`<section class="panel"><${Empty} title=${t("word.no_task_yet")} action=${html`<a class="button primary" href="#/new">${t("word.new_task")}</a>`}>${t("bids.none.do")}</${Empty}></section>`
      : html`<${Filters} query=${query} /><section class="panel bids" aria-label=${t("word.bids")}><${Bulk} shown=${shown} />
        ${shown.length ? html`<div class="scrolls"><${TaskTable} ids=${shown.map(({ id }) => id)} label=${t("word.bids")} sort=${query.sort} onSort=${(sort) => setQuery({ sort })} Lead=${ChooseBox} /></div>`
          : html`<${Empty} action=${html`<button class="button" onClick=${() => setQuery({ q: "", state: "", type: "", tag: "" })}>${t("word.show_all")}</button>`}>${t("bids.nothing")}</${Empty}>`}</section>`}</div>`;
}

function Filters({ query }) {
  const words = (prefix) => (each) => [each, each ? t(`${prefix}.${each}`) : t("word.all")];
  return html`<div class="filters" role="search">
    <label class="field find"><span>${t("word.search")}</span><input type="search" autocomplete="off" spellcheck=${false} placeholder=${t("bids.find.hint")} value=${query.q || ""} onInput=${(event) => setQuery({ q: event.target.value })} /></label>
    <${Pick} label=${t("word.state")} name="state" query=${query} options=${STATES.map(words("state"))} />
    <${Pick} label=${t("bids.type")} name="type" query=${query} options=${TYPES.map(words("bids.type"))} />
    ${allTags.value.length > 0 && html`<${Pick} label=${t("word.tag")} name="tag" query=${query} options=${[["", t("word.all")], ...allTags.value.map((tag) => [tag, tag])]} />`}
    <${Pick} label=${t("bids.sort")} name="sort" query=${query} options=${SORTS.map((each) => [each, t(`bids.sort.${each}`)])} /></div>`;
}

/** A sort the other way round is that of its column. */
const chosenOf = (given = "", options) => options.find(([value]) => value === given.replace(/^-/, ""))?.[0] ?? options[0][0];

const Pick = ({ label, name, query, options }) => html`<label class="field"><span>${label}</span>
  <select value=${chosenOf(query[name], options)} onChange=${(event) => setQuery({ [name]: event.target.value })}>
    ${options.map(([value, words]) => html`<option key=${value} value=${value} selected=${value === chosenOf(query[name], options)}>${words}</option>`)}</select></label>`;
