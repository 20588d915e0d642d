// What stands where, why, and what it could cost: everything in one glance.
import { html } from "../html.js";
import { unitName } from "../format.js";
import { me, taskIds } from "../store.js";
import { TaskRow } from "../task_row.js";
import { t } from "../texts.js";
import "../texts/overview.js";
import { Empty, Skeleton } from "../parts/states.js";
import { TaskHeads } from "../parts/task_row.js";
import { Feed } from "./overview/feed.js";
import { Listings } from "./overview/listings.js";
import { Notes } from "./overview/notes.js";
import { Numbers } from "./overview/numbers.js";

export default function Overview() {
  return html`<div class="page"><h1 class="sr">${t("overview.title")}</h1>
    <${Notes} /><${Numbers} /><${Tasks} />
    <div class="two"><${Listings} /><${Feed} /></div></div>`;
}

function Tasks() {
  const ids = taskIds.value;
  return html`<section class="panel" aria-labelledby="tasks-title">
    <header class="panel-head"><h2 id="tasks-title">${t("overview.tasks")}
      ${ids && html`<span class="count">${t("overview.tasks.of", { count: ids.length, most: me.value?.stats.maxTasks ?? "?" })}</span>`}</h2>
      <span class="panel-acts"><u>${unitName()}</u><a class="button primary" href="#/new">${t("overview.tasks.new")}</a></span></header>
    ${!ids ? html`<div class="panel-body"><${Skeleton} rows=${4} tall=${84} /></div>`
      : !ids.length ? html`<${Empty} title=${t("overview.tasks.none")} action=${html`<a class="button primary" href="#/new">${t("overview.tasks.new")}</a>`}>${t("overview.tasks.none.do")}</${Empty}>`
        : html`<${TaskHeads} /><ul class=${`task-rows ${ids.length > 30 ? "long" : ""}`}>${ids.map((id) => html`<${TaskRow} key=${id} id=${id} />`)}</ul>`}</section>`;
}
