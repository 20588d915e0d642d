// The form: the few fields that matter, then the others in groups that are opened on demand.
import { useEffect, useState } from "preact/hooks";
import { html } from "../../html.js";
import { t } from "../../texts.js";
import { DEFAULTS } from "./defaults.js";
import { GROUPS, MAIN } from "./fields.js";
import { Input } from "./inputs.js";
import { Name } from "./name.js";
import { Presets } from "./presets.js";
import { BidRange } from "./bid_range.js";

const ONE_COLUMN = new Set(["check", "levels", "between", "drop", "hours", "onFill", "lines"]);

export function Form({ form, draft, market, plan, twin, isNew, between, children }) {
  // Enter within a field starts nothing: real bids are placed by a button alone.
  return html`<form class="panel edit-form" onSubmit=${(event) => event.preventDefault()} novalidate aria-label=${t("edit.form")}>
    ${draft.isRestored && html`<div class="note" role="status"><p>${t("edit.restored")}</p><button type="button" class="button" onClick=${draft.restart}>${t("edit.restart")}</button></div>`}
    ${isNew && html`<${Presets} values=${form.values} set=${form.set} />`}
    <fieldset><legend>${t("edit.what")}</legend><${Name} form=${form} market=${market} isNew=${isNew} twin=${twin} /></fieldset>
    <fieldset><legend>${t("edit.range")}</legend><${BidRange} form=${form} reference=${plan.plan?.reference ?? market.floor} />
      <div class="fields">${MAIN.map((field) => html`<${Cell} key=${field.name} field=${field} form=${form} />`)}</div></fieldset>
    ${between}
    <div class="groups">${GROUPS.filter((group) => !group.when || group.when(form.values)).map((group) => html`<${Group} key=${group.name} group=${group} form=${form} />`)}</div>
    ${form.faults[""] && html`<p class="note bad" role="alert">${form.faults[""]}</p>`}
    ${children}</form>`;
}

const Cell = ({ field, form }) =>
  field.when && !field.when(form.values) ? null : html`<div class=${ONE_COLUMN.has(field.kind) ? "whole" : ""}><${Input} field=${field} form=${form} /></div>`;

const isSet = (name, values) => JSON.stringify(values[name]) !== JSON.stringify(name === "tags" ? [] : DEFAULTS[name]);

/** Opens by itself where something in it is wrong, and stays open when that is mended. */
function Group({ group, form }) {
  const names = group.fields.filter((field) => !field.when || field.when(form.values)).map((field) => field.name);
  const faulty = names.filter((name) => form.faults[name]).length;
  const given = names.filter((name) => isSet(name, form.values)).length;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (faulty) setOpen(true);
  }, [faulty > 0]);
  return html`<details class=${faulty ? "faulty" : ""} open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}><summary><span>${t(`edit.group.${group.name}`)}</span>
      <small>${faulty ? t("edit.group.faulty", { count: faulty }) : given ? t("edit.group.given", { count: given }) : t(`edit.group.${group.name}.hint`)}</small></summary>
    <fieldset><legend class="sr">${t(`edit.group.${group.name}`)}</legend><div class="fields">${group.fields.map((field) => html`<${Cell} key=${field.name} field=${field} form=${form} />`)}</div></fieldset></details>`;
}
