// Users in numbers, and the plan of each.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { call, get } from "../api.js";
import { clock, count, secondsOf, short, span } from "../format.js";
import { useAct, useLoad } from "../load.js";
import { setQuery } from "../router.js";
import { now } from "../store.js";
import { t } from "../texts.js";
import { Dialog } from "./dialog.js";
import { Choice, Field, TextField } from "./field.js";
import { Money } from "./money.js";
import { Loaded, wordsOf } from "./states.js";
import { Table } from "./table.js";
import { toast } from "./toast.js";
import { Pages, usePages } from "./pages.js";

export function Users({ find }) {
  const plans = useLoad((abort) => get("/admin/plans", { abort }));
  const pages = usePages("/admin/users", "users", { address: find }, [find], "after");
  const [changed, setChanged] = useState(null);
  return html`<section class="panel" aria-label=${t("admin.tab.users")}><div class="panel-body admin-find"><${TextField} label=${t("admin.users.find")} value=${find} onChange=${(value) => setQuery({ find: value.trim() })} /></div>
      <${Pages} from=${pages} none=${t("admin.users.none")}>${(rows) => html`<${Table} label=${t("admin.tab.users")} rows=${rows} keyOf=${(row) => row.id} columns=${[
        { name: t("admin.user"), cell: (row) => html`<span><b>${row.displayName || short(row.address, 8, 6)}</b> ${row.isAdmin && html`<span class="tag">${t("admin.user.admin")}</span>`}${!row.maySignIn && html` <span class="tag stop">${t("admin.user.out")}</span>`}
          ${row.displayName && html`<br /><code class="quiet" title=${row.address}>${short(row.address, 8, 6)}</code>`}</span>` },
        { name: t("admin.user.plan"), cell: (row) => html`<span>${row.plan || t("admin.user.plan.none")} ${row.planIsOver && html`<span class="tag stop">${t("admin.user.over")}</span>`}<br /><small class="quiet">${row.planEndsAt ? clock(secondsOf(row.planEndsAt)) : ""}</small></span>` },
        { name: t("admin.user.tasks"), isNumber: true, cell: (row) => t("admin.user.running", row) },
        { name: t("admin.user.exposure"), isNumber: true, cell: (row) => html`<${Money} value=${row.exposure} />` },
        { name: t("admin.user.seen"), cell: (row) => (row.lastSeenAt ? span(now.value - secondsOf(row.lastSeenAt)) : t("admin.user.never")) },
        { name: "", isNumber: true, cell: (row) => html`<button class="button" aria-label=${t("admin.user.change.of", row)} onClick=${() => setChanged(row)}>${t("admin.user.change")}</button>` },
      ]} />`}</${Pages}></section>
    <section class="panel" aria-labelledby="plans-title"><header class="panel-head"><h2 id="plans-title">${t("admin.plans")}</h2></header>
      <${Loaded} from=${plans} rows=${1} tall=${44}>${(rows) => html`<${Table} label=${t("admin.plans")} rows=${rows} keyOf=${(row) => row.key} columns=${[
        { name: t("admin.user.plan"), cell: (row) => html`<b>${row.name}</b>` },
        { name: t("admin.user.tasks"), isNumber: true, cell: (row) => count(row.maxTasks) },
        { name: t("admin.plan.bids"), isNumber: true, cell: (row) => count(row.maxBidsPerTask) },
        { name: t("admin.plan.exposure"), isNumber: true, cell: (row) => html`<${Money} value=${row.maxExposure} />` },
        { name: t("admin.plan.price"), isNumber: true, cell: (row) => html`<${Money} value=${row.priceSats} />` },
        { name: t("admin.plan.days"), isNumber: true, cell: (row) => count(row.durationDays) },
        { name: t("admin.plan.users"), isNumber: true, cell: (row) => count(row.users) },
      ]} />`}</${Loaded}></section>
    ${changed && html`<${PlanOf} key=${changed.id} user=${changed} plans=${plans.value || []} onClose=${() => setChanged(null)} onSaved=${() => (setChanged(null), pages.again(), plans.again())} />`}`;
}

function PlanOf({ user, plans, onClose, onSaved }) {
  const [plan, setPlan] = useState(user.plan || plans[0]?.key || "");
  const [day, setDay] = useState("");
  const { isBusy, run } = useAct();
  const save = (event) => {
    event.preventDefault();
    return run(async () => {
      try {
        const answer = await call("PUT", `/admin/users/${user.id}`, { plan, ...(day ? { endsAt: day } : {}) });
        if (answer.tasksStopped) toast(t("admin.user.stopped", { count: answer.tasksStopped }));
        onSaved();
      } catch (refusal) {
        toast(wordsOf(refusal), { isBad: true });
      }
    });
  };
  return html`<${Dialog} title=${t("admin.user.title", { name: user.displayName || short(user.address, 8, 6) })} onClose=${onClose}><form class="form" onSubmit=${save}>
    <${Choice} label=${t("admin.user.plan")} value=${plan} onChange=${setPlan} options=${plans.map((each) => [each.key, each.name])} />
    <${Field} label=${t("admin.user.ends")} hint=${t("admin.user.ends.hint")}>${(names) => html`<input ...${names} type="date" value=${day} onInput=${(event) => setDay(event.target.value)} />`}</${Field}>
    <div class="dialog-acts"><button type="button" class="button" onClick=${onClose}>${t("cancel")}</button><button class="button primary" disabled=${isBusy}>${t("admin.save")}</button></div></form></${Dialog}>`;
}
