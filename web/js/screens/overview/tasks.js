// The bidding tasks at a glance: first those in trouble, then the ten with the most on the market.
import { html, t } from "../../page.js";
import { me, taskIds } from "../../store.js";
import { sorted } from "../../task_order.js";
import { Said } from "../../parts/said.js";
import { Empty, Skeleton } from "../../parts/states.js";
import { Density, Fault, Standing, TaskTable, entries } from "../../parts/task_table.js";
import { faultOf } from "../../texts/reasons.js";

const MOST_LOOKS = 5;
const MOST = 10;

export function Tasks() {
  const ids = taskIds.value;
  const all = entries.value;
  const looks = groupsOf(sorted((all || []).filter((each) => each.look), "state"));
  const shown = sorted(all || [], "exposure").slice(0, MOST);
  return html`<div class="tasks">${looks.length > 0 && html`<${Looks} looks=${looks} />`}
    <section class="panel fill" aria-labelledby="tasks-title"><header class="panel-head"><h2 id="tasks-title">${t(ids?.length > MOST ? "overview.tasks.top" : "overview.tasks", { most: MOST })}
        ${ids && html`<span class="count">${t("overview.tasks.of", { count: ids.length, most: me.value?.stats.maxTasks ?? "?" })}</span>`}</h2>
      <span class="panel-acts">${ids?.length > 0 && html`<${Density} />`}${ids?.length > MOST && html`<a class="link" href="#/bids">${t("overview.tasks.all", { count: ids.length })}</a>`}
        <a class="button primary" href="#/new">${t("word.new_task")}</a></span></header>
    ${!ids ? html`<div class="panel-body"><${Skeleton} rows=${6} tall=${30} /></div>`
      : !ids.length ? html`<${Empty} title=${t("word.no_task_yet")} action=${html`<a class="button primary" href="#/new">${t("word.new_task")}</a>`}>${t("overview.tasks.none.do")}</${Empty}>`
        : html`<div class="scrolls"><${TaskTable} ids=${shown.map(({ task }) => task.id)} label=${t("overview.tasks")} sort="exposure" all=${ids.length} /></div>`}</section></div>`;
}

/** Entries with the same trouble, together: [[entry, ...], ...]. */
function groupsOf(entries) {
  const groups = new Map();
  for (const entry of entries) {
    const { task, state, look } = entry;
    const why = `${look} ${state} ${task.lastError ? faultOf(task).title : ""}`;
    groups.set(why, [...(groups.get(why) || []), entry]);
  }
  return [...groups.values()];
}

function Looks({ looks }) {
  const count = looks.reduce((sum, group) => sum + group.length, 0);
  return html`<section class="panel looks" aria-labelledby="looks-title"><header class="panel-head"><h2 id="looks-title">${t("overview.looks")}<span class="count">${count}</span></h2>
      ${count > 1 && html`<a class="link" href="#/bids?state=look">${t("overview.looks.all", { count })}</a>`}</header>
    <ul>${looks.slice(0, MOST_LOOKS).map(([{ task, row, look }, ...others]) => html`<li key=${task.id} class="look-row" data-row>
      <a class="cover" href=${others.length ? `#/bids?state=${look}` : `#/tasks/${task.id}`}><b><bdi>${task.slug}</bdi></b>${others.length > 0 && html`<span class="count">${t("overview.looks.more", { count: others.length })}</span>`}</a>
      <${Standing} task=${task} row=${row} />
      <span class="look-why">${task.lastError ? html`<${Fault} task=${task} />` : html`<${Said} said=${row?.said} most=${2} />`}</span></li>`)}</ul></section>`;
}
