// Presets: named settings of tasks, to make tasks of and to carry elsewhere.
import { useRef } from "preact/hooks";
import { html, t } from "../page.js";
import { call, get } from "../api.js";
import { Empty, Loaded, attempt, confirmed, deleteIfSure, showRefusal, toast, useAct, useLoad } from "./states.js";
import { clock, secondsOf } from "../format.js";
import { now } from "../store.js";
import { Table, download } from "./basics.js";

export default function Presets() {
  const found = useLoad((abort) => get("/presets", { abort }));
  const { isBusy, run } = useAct();
  const file = useRef(null);
  const save = () => run(() => attempt(async () => {
    const text = JSON.stringify(await get("/presets/export"), null, 2);
    download(new Blob([text], { type: "application/json" }), "bidkeeper-presets.json");
  }));
  const read = () => run(async () => {
    let body;
    try {
      body = JSON.parse(await file.current.files[0].text());
    } catch {
      return toast(t("presets.import.bad"), { isBad: true });
    } finally {
      file.current.value = "";
    }
    try {
      await call("POST", "/presets/import", body);
    } catch (refusal) {
      if (refusal.status !== 409) return showRefusal(refusal);
      if (!(await confirmed({ title: t("presets.import.title"), lines: [refusal.message, t("presets.import.what")], act: t("presets.import.do") }))) return undefined;
      const again = await call("POST", "/presets/import", { ...body, replace: true }).then(() => true, (other) => showRefusal(other));
      if (!again) return undefined;
    }
    toast(t("presets.import.done"));
    return found.again();
  });
  const end = (row) => run(() => deleteIfSure(`/presets/${row.id}`, { title: t("settings.delete.of", row), lines: [], act: t("word.delete") }, found.again));
  return html`<section class="panel" aria-labelledby="presets-title"><header class="panel-head"><h2 id="presets-title">${t("presets.title")}</h2><div class="acts-row">
      <button class="button" disabled=${isBusy} onClick=${() => file.current.click()}>${t("presets.import")}</button>
      <input class="sr" type="file" tabindex="-1" accept="application/json" aria-label=${t("presets.import")} ref=${file} onChange=${read} />
      <button class="button" disabled=${isBusy} onClick=${save}>${t("presets.export")}</button></div></header>
    <${Loaded} from=${found} rows=${2} tall=${44}>${(rows) => (rows.length ? html`<${Table} label=${t("presets.title")} rows=${rows} keyOf=${(row) => row.id} columns=${[
      { name: t("word.name"), cell: (row) => html`<b>${row.name}</b>` },
      { name: t("presets.changed"), cell: (row) => clock(secondsOf(row.updatedAt), now.value) },
      { name: "", isNumber: true, cell: (row) => html`<span class="acts-row"><a class="button" href=${`#/new?preset=${row.id}`}>${t("presets.use")}</a>
        <button class="button" disabled=${isBusy} aria-label=${t("settings.delete.of", row)} onClick=${() => end(row)}>${t("word.delete")}</button></span>` },
    ]} />` : html`<${Empty}>${t("presets.none")}</${Empty}>`)}</${Loaded}></section>`;
}
