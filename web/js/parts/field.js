// Fields of forms: a label, what is wrong with the value, and amounts that are never guessed.
import { useId, useState } from "preact/hooks";
import { html } from "../html.js";
import { NONE, amount, parseSats, sats } from "../format.js";
import { t } from "../texts.js";

/** A label around any input; `hint` says what it means, `mark` what it was before, `fault` what is wrong. */
export function Field({ label, hint, fault, mark, children }) {
  const id = useId();
  const told = [hint && `${id}-hint`, mark && `${id}-mark`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return html`<div class=${`field ${fault ? "faulty" : ""}`}><label for=${id}>${label}</label>
    ${children({ id, "aria-describedby": told || undefined, "aria-invalid": fault ? "true" : undefined })}
    ${mark && html`<small class="was" id=${`${id}-mark`}>${mark}</small>`}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${fault && html`<small class="fault" id=${`${id}-fault`} role="alert">${fault}</small>`}</div>`;
}

const about = ({ label, hint, fault, mark }) => ({ label, hint, fault, mark });
const others = ({ label: _label, hint: _hint, fault: _fault, mark: _mark, value: _value, onChange: _onChange, unit: _unit, options: _options, places: _places, ...rest }) => rest;

/** A line of text. */
export const TextField = (props) => html`<${Field} ...${about(props)}>
  ${(names) => html`<input ...${names} ...${others(props)} value=${props.value} autocomplete="off" spellcheck="false" onInput=${(event) => props.onChange(event.target.value)} />`}</${Field}>`;

/** Groups the digits of what is being typed, and keeps the caret behind the digit that it was behind. */
function regroup(input) {
  if (!/^[0-9][0-9,]*$/.test(input.value)) return input.value;
  const before = input.value.slice(0, input.selectionStart).replaceAll(",", "").length;
  const text = input.value.replaceAll(",", "").replace(/^0+(?=\d)/, "").replace(/\B(?=(\d{3})+$)/g, ",");
  let at = 0;
  for (let digits = 0; digits < before && at < text.length; at += 1) digits += text[at] === "," ? 0 : 1;
  input.value = text;
  input.setSelectionRange(at, at);
  return text;
}

const isBitcoin = (text) => /btc|₿/i.test(text);

/**
 * Sats: grouped as they are typed. An amount in bitcoin is shown in sats first, and taken when the field is left or by
 * Enter. `onChange` gets sats, or null for what is no amount.
 */
export function SatsField(props) {
  const { value, hint, fault, onChange } = props;
  const [typed, setTyped] = useState(null);
  const read = typed === null ? value : parseSats(typed);
  const isWaiting = typed !== null && isBitcoin(typed);
  const said = typed !== null && typed.trim() && read === null ? t("field.no_sats") : fault;
  const onInput = (event) => {
    const text = regroup(event.target);
    setTyped(text);
    if (!isBitcoin(text)) onChange(parseSats(text));
  };
  const take = () => {
    if (read === null) return;
    if (isWaiting) onChange(read);
    setTyped(null);
  };
  return html`<${Field} ...${about(props)} fault=${said} hint=${isWaiting && read !== null ? t("field.is_sats", { sats: sats(read) }) : hint}>
    ${(names) => html`<span class="with-unit"><input ...${names} ...${others(props)} inputmode="text" autocomplete="off" spellcheck="false"
      value=${typed ?? (value === null ? "" : sats(value))} onInput=${onInput} onBlur=${take}
      onKeyDown=${(event) => event.key === "Enter" && take()} /><u>sats</u></span>`}</${Field}>`;
}

/** A whole number, or null. */
export const CountField = (props) => html`<${Field} ...${about(props)}>
  ${(names) => html`<span class=${props.unit ? "with-unit" : ""}><input ...${names} ...${others(props)} type="number" step="1" value=${props.value ?? ""}
    onInput=${(event) => props.onChange(event.target.value === "" ? null : Number(event.target.value))} />${props.unit && html`<u>${props.unit}</u>`}</span>`}</${Field}>`;

/** A number that is written with a decimal point, and moved by `places` digits: 2 shows 0.925 as 92.5. Null for none. */
export function DecimalField(props) {
  const { value, onChange, places = 0, unit, fault } = props;
  const [typed, setTyped] = useState(null);
  const isNumber = (text) => /^\s*(\d+\.?\d*|\.\d+)\s*$/.test(text);
  const shown = value === null ? "" : String(Number(`${value}e${places}`));
  const take = (text) => {
    setTyped(text);
    // By its digits, not by a division: 7 % is 0.07 and nothing beside it.
    onChange(isNumber(text) ? Number(`${Number(text)}e${-places}`) : null);
  };
  const said = typed !== null && typed.trim() && !isNumber(typed) ? t("field.no_number") : fault;
  return html`<${Field} ...${about(props)} fault=${said}>
    ${(names) => html`<span class=${unit ? "with-unit" : ""}><input ...${names} ...${others(props)} inputmode="decimal" autocomplete="off" value=${typed ?? shown}
      onInput=${(event) => take(event.target.value)} onBlur=${() => said === fault && setTyped(null)} />${unit && html`<u>${unit}</u>`}</span>`}</${Field}>`;
}

/** A fraction of one, written in percent. */
export const PercentField = (props) => html`<${DecimalField} ...${props} places=${2} unit="%" />`;

/** Lines of text, as a list. */
export function LinesField(props) {
  const [typed, setTyped] = useState(null);
  const read = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
  return html`<${Field} ...${about(props)}>${(names) => html`<textarea ...${names} ...${others(props)} rows="3" spellcheck="false"
    value=${typed ?? props.value.join("\n")} onInput=${(event) => (setTyped(event.target.value), props.onChange(read(event.target.value)))}
    onBlur=${() => setTyped(null)} />`}</${Field}>`;
}

/** One of a few: [[value, words], ...]. */
export const Choice = (props) => html`<${Field} ...${about(props)}>
  ${(names) => html`<select ...${names} ...${others(props)} value=${props.value} onChange=${(event) => props.onChange(event.target.value)}>
    ${props.options.map(([each, words]) => html`<option key=${each} value=${each} selected=${each === props.value}>${words}</option>`)}</select>`}</${Field}>`;

export const Check = ({ label, hint, fault, mark, value, onChange, ...rest }) => html`<label class="check"><input type="checkbox" ...${rest} checked=${value}
  onChange=${(event) => onChange(event.target.checked)} /><span>${label}${mark && html`<small class="was">${mark}</small>`}${hint && html`<small>${hint}</small>`}
  ${fault && html`<small class="fault" role="alert">${fault}</small>`}</span></label>`;

/** A few words side by side, one of them chosen. */
export const Segments = ({ label, value, options, onChange }) => html`<div class="segments" role="group" aria-label=${label}>
  ${options.map(([each, words]) => html`<button key=${each} type="button" aria-pressed=${each === value} class=${each === value ? "on" : ""}
    onClick=${() => onChange(each)}>${words}</button>`)}</div>`;

export { NONE, amount };
