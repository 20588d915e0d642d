// The same change of many tasks: what is chosen here becomes so at each of them, and nothing else.
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { hasUnread } from "../../amounts.js";
import { fieldOf, labelOf, readShapes, shapes } from "../../config_shape.js";
import { rowOf } from "../../store.js";
import { Icon } from "../../parts/basics.js";
import { Dialog, Skeleton, attempt } from "../../parts/states.js";
import { Input } from "../edit/inputs.js";
import { valueWords } from "../edit/words.js";
import "../../texts/edit.js";

/** What makes a task the one that it is. */
const ITS_OWN = new Set(["slug", "type", "venue", "tags", "bidType", "traitType", "traitValue"]);
const MOST_SAID = 3;

const floorOf = ({ id, config, type }) => {
  const floor = rowOf(id).value?.floor;
  if (!floor) return null;
  if (type !== "rune") return floor;
  return config.quantityMode === "quantity" ? floor * Number(config.quantity) : null;
};

function warningsOf(list, change) {
  const real = list.filter((task) => task.isRunning && !(change.dryRun ?? task.config.dryRun));
  const above = list.filter((task) => change.hardcapSats && floorOf(task) !== null && change.hardcapSats > floorOf(task));
  return [
    above.length > 0 && t("bids.change.cap", { count: above.length }),
    change.dryRun === false && list.some((task) => task.config.dryRun) && t("bids.change.real", { count: list.filter((task) => task.config.dryRun).length }),
    t("bids.change.runs", { count: real.length }),
  ].filter(Boolean);
}

/** The values that the tasks have now, in words. */
function nowWords(list, name) {
  const found = [...new Set(list.map((task) => valueWords(name, task.config[name], task.config)))];
  return t("bids.change.now", { values: found.length > MOST_SAID ? [...found.slice(0, MOST_SAID), "…"].join(", ") : found.join(", ") });
}

/** A field is drawn whatever the others are: they differ between tasks. */
function valuesFor(field, list, change) {
  const wanted = Object.entries(field.when).map(([name, values]) => [name, values[0]]);
  return { ...list[0].config, ...Object.fromEntries(wanted), ...change };
}

export function ChangeDialog({ list, onClose, onDone }) {
  const [change, setChange] = useState({});
  useEffect(() => void attempt(readShapes), []);
  if (!shapes.value) return html`<${Dialog} title=${t("bids.change.title", { count: list.length })} onClose=${onClose}><${Skeleton} rows=${2} tall=${60} /></${Dialog}>`;
  const names = Object.keys(change);
  const rest = [...shapes.value.bidding.values()].filter(({ name }) => !ITS_OWN.has(name) && !(name in change));
  const pick = (name) => name && setChange({ ...change, [name]: list[0].config[name] });
  const drop = (name) => setChange(Object.fromEntries(Object.entries(change).filter(([each]) => each !== name)));
  const isReady = names.length > 0 && !hasUnread(change);
  const save = (event) => (event.preventDefault(), isReady && onDone(change));
  return html`<${Dialog} title=${t("bids.change.title", { count: list.length })} onClose=${onClose}>
    <p class="quiet">${t("bids.change.what")}</p>
    <form class="form" onSubmit=${save}>
      ${names.map((name) => html`<div key=${name} class="changed-field"><div class="form"><${Input} field=${fieldOf(name)} form=${{ values: valuesFor(fieldOf(name), list, change), set: (next) => setChange({ ...change, ...next }), faults: {}, base: null }} />
        <small class="quiet">${nowWords(list, name)}</small></div>
        <button type="button" class="plain" aria-label=${t("bids.change.drop", { label: labelOf(name) })} onClick=${() => drop(name)}><${Icon} name="close" /></button></div>`)}
      <label class="field"><span>${t("bids.change.field")}</span><select value="" onChange=${(event) => (pick(event.target.value), (event.target.value = ""))}>
        <option value="">${t("bids.change.pick")}</option>${rest.map(({ name, label }) => html`<option key=${name} value=${name}>${label}</option>`)}</select></label>
      ${names.length > 0 && warningsOf(list, change).map((words) => html`<p key=${words} class="note">${words}</p>`)}
      <div class="dialog-acts"><button type="button" class="button" onClick=${onClose}>${t("cancel")}</button><button class="button primary" disabled=${!isReady}>${t("bids.change.save", { count: list.length })}</button></div></form></${Dialog}>`;
}
