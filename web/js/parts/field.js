// Fields of forms: a label, what is wrong with the value, and amounts that are never guessed.
import { useId, useState } from "preact/hooks";
import { html } from "../html.js";
import { NONE, amount, parseSats, sats } from "../format.js";
import { t } from "../texts.js";

/** A label around any input; `hint` says what it means, `fault` what is wrong. */
export function Field({ label, hint, fault, children }) {
  const id = useId();
  const told = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return html`<div class=${`field ${fault ? "faulty" : ""}`}><label for=${id}>${label}</label>
    ${children({ id, "aria-describedby": told || undefined, "aria-invalid": fault ? "true" : undefined })}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${fault && html`<small class="fault" id=${`${id}-fault`} role="alert">${fault}</small>`}</div>`;
}

/** A line of text. */
export const TextField = ({ label, hint, fault, value, onChange, ...rest }) => html`<${Field} label=${label} hint=${hint} fault=${fault}>
  ${(names) => html`<input ...${names} ...${rest} value=${value} autocomplete="off" spellcheck="false" onInput=${(event) => onChange(event.target.value)} />`}</${Field}>`;

/** Sats: grouped as they are read; "0.05 btc" is shown as sats before it is taken. `onChange` gets sats, or null. */
export function SatsField({ label, hint, fault, value, onChange, ...rest }) {
  const [typed, setTyped] = useState(null);
  const read = typed === null ? value : parseSats(typed);
  const isOther = typed !== null && /btc|₿/i.test(typed);
  const said = typed !== null && typed.trim() && read === null ? t("field.no_sats") : fault;
  return html`<${Field} label=${label} fault=${said} hint=${isOther && read !== null ? t("field.is_sats", { sats: sats(read) }) : hint}>
    ${(names) => html`<span class="with-unit"><input ...${names} ...${rest} inputmode="text" autocomplete="off" value=${typed ?? (value === null ? "" : sats(value))}
      onInput=${(event) => (setTyped(event.target.value), onChange(parseSats(event.target.value)))}
      onBlur=${() => read !== null && setTyped(null)} /><u>sats</u></span>`}</${Field}>`;
}

/** A whole number, or null. */
export const CountField = ({ label, hint, fault, value, onChange, ...rest }) => html`<${Field} label=${label} hint=${hint} fault=${fault}>
  ${(names) => html`<input ...${names} ...${rest} type="number" step="1" value=${value ?? ""}
    onInput=${(event) => onChange(event.target.value === "" ? null : Number(event.target.value))} />`}</${Field}>`;

/** One of a few: [[value, words], ...]. */
export const Choice = ({ label, hint, fault, value, options, onChange, ...rest }) => html`<${Field} label=${label} hint=${hint} fault=${fault}>
  ${(names) => html`<select ...${names} ...${rest} value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${options.map(([each, words]) => html`<option key=${each} value=${each} selected=${each === value}>${words}</option>`)}</select>`}</${Field}>`;

export const Check = ({ label, hint, value, onChange, ...rest }) => html`<label class="check"><input type="checkbox" ...${rest} checked=${value}
  onChange=${(event) => onChange(event.target.checked)} /><span>${label}${hint && html`<small>${hint}</small>`}</span></label>`;

/** A few words side by side, one of them chosen. */
export const Segments = ({ label, value, options, onChange }) => html`<div class="segments" role="group" aria-label=${label}>
  ${options.map(([each, words]) => html`<button key=${each} type="button" aria-pressed=${each === value} class=${each === value ? "on" : ""}
    onClick=${() => onChange(each)}>${words}</button>`)}</div>`;

export { NONE, amount };
