// Draws a field by its kind.
import { html } from "../../html.js";
import { Check, Choice, CountField, DecimalField, LinesField, PercentField, SatsField, TextField } from "../../parts/field.js";
import { t } from "../../texts.js";
import { Between, Drop, Hours, Levels, Schedule } from "./lists.js";
import { Budget, Fee, OnFill, Tags } from "./special.js";
import { valueWords } from "./words.js";

const optional = (field, values) => (field.isOptional ? { placeholder: t("edit.usual", { value: t(`edit.${field.name}.usual`, values) }) } : {});
const SIMPLE = {
  sats: (field, props) => html`<${SatsField} ...${props} />`,
  count: (field, props) => html`<${CountField} ...${props} min="0" unit=${field.unit && t(`edit.unit.${field.unit}`)} />`,
  fraction: (field, props) => html`<${PercentField} ...${props} />`,
  quantity: (field, props) => html`<${DecimalField} ...${props} />`,
  text: (field, props) => html`<${TextField} ...${props} />`,
  check: (field, props) => html`<${Check} ...${props} />`,
  lines: (field, props) => html`<${LinesField} ...${props} />`,
  choice: (field, props) => html`<${Choice} ...${props} options=${field.options.map((each) => [each, t(`edit.${field.name}.${each}`)])} />`,
  levels: (field, props) => html`<${Levels} ...${props} />`,
  between: (field, props) => html`<${Between} ...${props} />`,
  drop: (field, props) => html`<${Drop} ...${props} />`,
  hours: (field, props) => html`<${Hours} ...${props} />`,
  schedule: (field, props) => html`<${Schedule} ...${props} />`,
  budget: (field, props) => html`<${Budget} ...${props} />`,
  tags: (field, props) => html`<${Tags} ...${props} />`,
  fee: (field, props) => html`<${Fee} ...${props} />`,
};

/** One field. `form` is {values, set, faults, base}: what is typed, how to change it, what is wrong, what is stored. */
export function Input({ field, form, prefix = "" }) {
  const { name, kind } = field;
  const { values, set, faults, base } = form;
  if (field.when && !field.when(values)) return null;
  const isChanged = base && JSON.stringify(values[name]) !== JSON.stringify(base[name]);
  const props = {
    name: prefix + name,
    label: t(`edit.${name}`),
    hint: t(`edit.${name}.hint`, values),
    mark: isChanged ? t("edit.was", { value: valueWords(name, base[name], base) }) : undefined,
    fault: faults[name],
    value: values[name],
    values,
    onChange: (value) => set({ [name]: value }),
  };
  if (kind === "onFill") return html`<${OnFill} ...${props} Input=${Input} />`;
  const { values: _values, ...plain } = props;
  return SIMPLE[kind](field, { ...(kind in WHOLE ? props : plain), ...optional(field, values) });
}

const WHOLE = { levels: true, between: true };
