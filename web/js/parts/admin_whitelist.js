// The addresses that may sign in, while not everybody may.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { call, get } from "../api.js";
import { clock, secondsOf } from "../format.js";
import { useAct, useLoad } from "../load.js";
import { t } from "../texts.js";
import { Copyable } from "./copy.js";
import { confirmed } from "./dialog.js";
import { TextField } from "./field.js";
import { Loaded, wordsOf } from "./states.js";
import { Table } from "./table.js";
import { toast } from "./toast.js";

const told = (refusal) => toast(wordsOf(refusal), { isBad: true });

/** Reads the whole list: some hundreds of addresses in a few pages. */
async function readWhitelist(abort) {
  const first = await get("/admin/whitelist?limit=500", { abort });
  const { addresses } = first;
  for (let { next } = first; next !== null; ) {
    const page = await get(`/admin/whitelist?limit=500&after=${encodeURIComponent(next)}`, { abort });
    addresses.push(...page.addresses);
    next = page.next;
  }
  return { ...first, addresses };
}

export function Whitelist() {
  const found = useLoad(readWhitelist);
  const [address, setAddress] = useState("");
  const { isBusy, run } = useAct();
  const add = (event) => {
    event.preventDefault();
    return run(() => call("POST", "/admin/whitelist", { address: address.trim() }).then(() => (setAddress(""), found.again()), told));
  };
  const remove = (row) => run(async () => {
    if (!(await confirmed({ title: t("admin.remove.title", row), lines: [t("admin.remove.what")], act: t("admin.remove") }))) return;
    try {
      const off = await call("DELETE", `/admin/whitelist/${row.address}`);
      toast(off.maySignIn ? t("admin.removed.still") : t("admin.user.stopped", { count: off.tasksStopped || 0 }));
      found.again();
    } catch (refusal) {
      told(refusal);
    }
  });
  return html`<section class="panel" aria-label=${t("admin.tab.whitelist")}><form class="panel-body admin-find" onSubmit=${add}>
      <${TextField} label=${t("admin.add.label")} value=${address} onChange=${setAddress} /><button class="button primary" disabled=${isBusy || !address.trim()}>${t("admin.add")}</button></form>
    <${Loaded} from=${found} rows=${2} tall=${44}>${(list) => html`${list.isOpen && html`<div class="panel-body"><div class="note"><p>${t("admin.open")}</p></div></div>`}
      <${Table} label=${t("admin.tab.whitelist")} rows=${[...list.fromSettings, ...list.addresses]} keyOf=${(row) => `${row.address} ${row.addedAt || ""}`} columns=${[
        { name: t("admin.users.find"), cell: (row) => html`<span><${Copyable} text=${row.address} head=${8} tail=${6} />${row.isAdmin && html` <span class="tag">${t("admin.user.admin")}</span>`}</span>` },
        { name: t("admin.since"), cell: (row) => (row.addedAt ? clock(secondsOf(row.addedAt)) : t("admin.settings")) },
        { name: "", isNumber: true, cell: (row) => row.addedAt && !row.isAdmin && html`<button class="button" disabled=${isBusy} aria-label=${t("admin.remove.title", row)} onClick=${() => remove(row)}>${t("admin.remove")}</button>` },
      ]} />`}</${Loaded}></section>`;
}
