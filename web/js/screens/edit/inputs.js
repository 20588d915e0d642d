// Draws a field by its kind.
import { html } from "../../html.js";
import { matters } from "../../config_shape.js";
import { Check, Choice, CountField, DecimalField, LinesField, PercentField, SatsField, TextField } from "../../parts/field.js";
import { t } from "../../texts.js";
import { Between, Drop, Hours, Levels, Schedule } from "./lists.js";
import { Budget, Fee, OnFill, Tags } from "./special.js";
import { valueWords } from "./words.js";

const optional = (field) => (field.usual ? { placeholder: field.usual } : {});
const SIMPLE = {
  sats: (field, props) => html`<${SatsField} ...${props} />`,
  count: (field, props) => html`<${CountField} ...${props} min=${field.least ?? 0} max=${field.most ?? undefined} unit=${field.unit} />`,
  fraction: (field, props) => html`<${PercentField} ...${props} />`,
  quantity: (field, props) => html`<${DecimalField} ...${props} />`,
  text: (field, props) => html`<${TextField} ...${props} />`,
  check: (field, props) => html`<${Check} ...${props} />`,
  lines: (field, props) => html`<${LinesField} ...${props} />`,
  choice: (field, props) => html`<${Choice} ...${props} options=${field.choices.map(({ value, label }) => [value, label])} />`,
  levels: (field, props) => html`<${Levels} ...${props} />`,
  between: (field, props) => html`<${Between} ...${props} />`,
  drop: (field, props) => html`<${Drop} ...${props} />`,
  hours: (field, props) => html`<${Hours} ...${props} />`,
  schedule: (field, props) => html`<${Schedule} ...${props} />`,
  budget: (field, props) => html`<${Budget} ...${props} />`,
  tags: (field, props) => html`<${Tags} ...${props} />`,
  fee: (field, props) => html`<${Fee} ...${props} />`,
};

/** A field is drawn where it matters, and where something is wrong with it: else it could not be mended. */
export const isShown = (field, { values, faults }) => matters(field, values) || Boolean(faults[field.name]);

/** One field. `form` is {values, set, faults, base}: what is typed, how to change it, what is wrong, what is stored. */
export function Input({ field, form, prefix = "" }) {
  const { name, kind } = field;
  const { values, set, faults, base } = form;
  if (!isShown(field, form)) return null;
  const isChanged = base && JSON.stringify(values[name]) !== JSON.stringify(base[name]);
  const props = {
    name: prefix + name,
    label: field.label,
    hint: field.hint,
    mark: isChanged ? t("edit.was", { value: valueWords(name, base[name], base) }) : undefined,
    fault: faults[name],
    value: values[name],
    values,
    onChange: (value) => set({ [name]: value }),
  };
  if (kind === "onFill") return html`<${OnFill} ...${props} Input=${Input} />`;
  const { values: _values, ...plain } = props;
  return SIMPLE[kind](field, { ...(kind in WHOLE ? props : plain), ...optional(field) });
}

const WHOLE = { levels: true, between: true };
