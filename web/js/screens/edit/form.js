// The form: the few fields that matter, then the others in groups that are opened on demand.
import { useEffect, useState } from "preact/hooks";
import { html } from "../../html.js";
import { MAIN_GROUPS, MORE_GROUPS, fieldOf, groupOf } from "../../config_shape.js";
import { t } from "../../texts.js";
import { Input, isShown } from "./inputs.js";
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
      <div class="fields">${drawn(MAIN_GROUPS, form).map((field) => html`<${Cell} key=${field.name} field=${field} form=${form} />`)}</div></fieldset>
    ${between}
    <div class="groups">${MORE_GROUPS.map((group) => html`<${Group} key=${group} group=${group} form=${form} />`)}</div>
    ${form.faults[""] && html`<p class="note bad" role="alert">${form.faults[""]}</p>`}
    ${children}</form>`;
}

/** The fields of these groups that are drawn: those that take half a row first, so that no row has a hole. */
const drawn = (groups, form) => {
  const fields = groups.flatMap((group) => groupOf(group)).filter((field) => isShown(field, form));
  return [false, true].flatMap((isWhole) => fields.filter((field) => ONE_COLUMN.has(field.kind) === isWhole));
};

const Cell = ({ field, form }) => html`<div class=${ONE_COLUMN.has(field.kind) ? "whole" : ""}><${Input} field=${field} form=${form} /></div>`;

const isSet = (name, values) => JSON.stringify(values[name]) !== JSON.stringify(fieldOf(name).default);

/** Opens by itself where something in it is wrong, and stays open when that is mended. */
function Group({ group, form }) {
  const fields = drawn([group], form);
  const names = fields.map((field) => field.name);
  const faulty = names.filter((name) => form.faults[name]).length;
  const given = names.filter((name) => isSet(name, form.values)).length;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (faulty) setOpen(true);
  }, [faulty > 0]);
  if (!fields.length) return null;
  return html`<details class=${faulty ? "faulty" : ""} open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}><summary><span>${t(`edit.group.${group}`)}</span>
      <small>${faulty ? t("edit.group.faulty", { count: faulty }) : given ? t("edit.group.given", { count: given }) : t(`edit.group.${group}.hint`)}</small></summary>
    <fieldset><legend class="sr">${t(`edit.group.${group}`)}</legend><div class="fields">${fields.map((field) => html`<${Cell} key=${field.name} field=${field} form=${form} />`)}</div></fieldset></details>`;
}
