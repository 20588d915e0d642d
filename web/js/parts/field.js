// Fields of forms: a label, what is wrong with the value, and numbers by the grammar of amounts.js.
import { useId, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { SATS, countOf, decimalOf, isUnread, read, writeBtc, writeSats } from "../amounts.js";
import { sentence, showRefusal } from "./states.js";

/** Splits the server's "field: what is wrong" into {field: words}; under "" is what is about none of `names` (null: of all). */
export function faultsOf(details, names = null) {
  const found = {};
  for (const detail of details) {
    const [, name, words] = /^([A-Za-z]+): (.*)$/s.exec(detail) || [null, "", detail];
    const at = !names || names.includes(name) ? name : "";
    const said = at ? words : detail;
    found[at] = found[at] ? `${found[at]}. ${said}` : said;
  }
  return found;
}

/**
 * [faults, send]: `send(act)` resolves to the act's value, or to null once a refusal is shown: at the fields of `names` that it is
 * about, else in a toast.
 */
export function useFaults(names) {
  const [faults, setFaults] = useState({});
  const send = (act) => {
    setFaults({});
    return act().catch((refusal) => {
      const { "": other, ...atFields } = faultsOf(refusal.details || [], names);
      setFaults(Object.fromEntries(Object.entries(atFields).map(([name, words]) => [name, sentence(words)])));
      if (other || !Object.keys(atFields).length) showRefusal(refusal);
      return null;
    });
  };
  return [faults, send];
}

/**
 * A label around any input; `hint` says what it means, `mark` what it was before, `fault` what is wrong, `reads` what is read
 * of a number ("" of none, and then the line stays for screen readers).
 */
export function Field({ label, hint, fault, mark, reads, isUnread: cannotRead = false, children }) {
  const id = useId();
  const described = [reads && `${id}-reads`, hint && `${id}-hint`, mark && `${id}-mark`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return html`<div class=${`field ${fault ? "faulty" : ""}`}><label for=${id}>${label}</label>
    ${children({ id, "aria-describedby": described || undefined, "aria-invalid": fault || cannotRead ? "true" : undefined, "data-unread": cannotRead ? "" : undefined })}
    ${reads !== undefined && html`<small class="reads" id=${`${id}-reads`} aria-live="polite">${reads}</small>`}
    ${mark && html`<small class="was" id=${`${id}-mark`}>${mark}</small>`}
    ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
    ${fault && html`<small class="fault" id=${`${id}-fault`} role="alert">${fault}</small>`}</div>`;
}

const about = ({ label, hint, fault, mark }) => ({ label, hint, fault, mark });
const others = ({ label: _label, hint: _hint, fault: _fault, mark: _mark, value: _value, onChange: _onChange, unit: _unit, options: _options, places: _places, ...rest }) => rest;

/** A line of text. */
export const TextField = (props) => html`<${Field} ...${about(props)}>
  ${(names) => html`<input ...${names} ...${others(props)} value=${props.value} autocomplete="off" spellcheck=${false} onInput=${(event) => props.onChange(event.target.value)} />`}</${Field}>`;

/**
 * A number by a kind of amounts.js. What is typed stays as it is until the field is left, or Enter; then a number that was read is
 * written with its groups. `onChange` gets the number, null for an empty field, or {unread: text}. `reads(number, text)`
 * puts what was read into words.
 */
function NumberField({ kind, unit, reads, ...props }) {
  const { value, fault, onChange } = props;
  const [typed, setTyped] = useState(null);
  const [isAt, setAt] = useState(false);
  const [isOwn, setOwn] = useState(false);
  const plain = isUnread(value) ? value.unread : (value ?? null) === null ? "" : null;
  // Within the field a number has no groups, so that no digit which is added or taken makes them wrong.
  const text = typed ?? plain ?? (isAt ? kind.edit(value) : kind.write(value));
  const found = typed === null && plain === null ? { value } : read(text, kind);
  const wrong = found.fault && t(found.fault, found.values);
  const said = wrong && typed !== null ? wrong : isOwn && !wrong && found.value !== null ? reads(found.value, text) : "";
  const onInput = (event) => {
    const next = read(event.target.value, kind);
    setTyped(event.target.value);
    setOwn(true);
    onChange(next.fault ? { unread: event.target.value } : next.value);
  };
  const judge = () => (setTyped(null), setAt(false));
  const onFocus = (event) => {
    setAt(true);
    event.target.value = plain ?? kind.edit(value);
    event.target.select();
  };
  return html`<${Field} ...${about(props)} fault=${wrong ? typed === null && wrong : fault} isUnread=${Boolean(wrong)} reads=${said}>
    ${(names) => html`<span class=${unit ? "with-unit" : "bare"}><input ...${names} ...${others(props)} type="text" inputmode=${kind.inputmode} autocomplete="off" spellcheck=${false}
      value=${text} onInput=${onInput} onFocus=${onFocus} onBlur=${judge} onKeyDown=${(event) => event.key === "Enter" && judge()} />${unit && html`<u>${unit}</u>`}</span>`}</${Field}>`;
}

/** Sats, in any notation of an amount. */
export const SatsField = (props) => html`<${NumberField} ...${props} kind=${SATS} unit="sats" reads=${(sats) => t("field.is_sats", { sats: writeSats(sats), btc: writeBtc(sats) })} />`;

const isOther = (kind, number, text) => (text.trim() === kind.write(number) ? "" : t("field.is_number", { number: kind.say(number) }));

/** A whole number from `min` to `max`. */
export function CountField({ min, max, ...props }) {
  const kind = countOf(min === undefined ? 0 : Number(min), max === undefined ? undefined : Number(max));
  return html`<${NumberField} ...${props} kind=${kind} reads=${(number, text) => isOther(kind, number, text)} />`;
}

/** A decimal number that is shown moved by `places` digits: 2 shows 0.925 as 92.5. */
export function DecimalField({ places = 0, ...props }) {
  const kind = decimalOf(places, props.unit);
  return html`<${NumberField} ...${props} kind=${kind} reads=${(number, text) => isOther(kind, number, text)} />`;
}

/** A fraction of one, written in percent. */
export const PercentField = (props) => html`<${DecimalField} ...${props} places=${2} unit="%" />`;

/** Lines of text, as a list. */
export function LinesField(props) {
  const [typed, setTyped] = useState(null);
  const read = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
  return html`<${Field} ...${about(props)}>${(names) => html`<textarea ...${names} ...${others(props)} rows="3" spellcheck=${false}
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
