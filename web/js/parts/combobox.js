// A line of text with a list to choose from, after WAI-ARIA's combobox: what is typed counts, the list only proposes.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { Field } from "./field.js";
import "../texts/choice.js";

/**
 * `options` are [{key, value, ...}], `draw(option)` draws one; `onChange` gets the text, also of what is chosen. `onAt` hears
 * whether the field has the focus. `wants` whether the list is wanted.
 */
export function Combobox({ label, hint, fault, mark, value, options, draw, onChange, onAt = () => {}, wants = () => {}, isFocused = false, ...rest }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const input = useRef(null);
  const list = useRef(null);
  const shown = isOpen ? options : [];
  const active = Math.min(at, shown.length - 1);
  useEffect(() => {
    // A touch screen's keyboard would cover half of the form before anything of it was seen.
    if (isFocused && !matchMedia("(pointer: coarse)").matches) input.current.focus();
  }, []);
  useEffect(() => wants(isOpen), [isOpen]);
  useEffect(() => void list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active]);
  const open = (place = -1) => (setOpen(true), setAt(place));
  const close = () => (setOpen(false), setAt(-1));
  const choose = (option) => {
    onChange(option.value);
    close();
    input.current.focus();
  };
  const step = (by) => {
    if (!isOpen) return open(by > 0 ? 0 : Infinity);
    const count = shown.length + 1; // behind the last one the text itself is meant again
    setAt(((active + 1 + by + count) % count) - 1);
  };
  const onKeyDown = (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && shown[active]) choose(shown[active]);
    else if (event.key === "Escape" && isOpen) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<${Field} label=${label} hint=${hint} fault=${fault} mark=${mark}>${(names) => html`<span class="combobox">
    <input ...${names} ...${rest} ref=${input} role="combobox" aria-autocomplete="list" aria-expanded=${shown.length > 0} aria-controls=${`${id}-list`}
      aria-activedescendant=${active >= 0 ? `${id}-${active}` : undefined} value=${value} autocomplete="off" autocapitalize="off" spellcheck=${false}
      onInput=${(event) => (onAt(true), open(), onChange(event.target.value))} onFocus=${() => onAt(true)} onClick=${() => open()} onKeyDown=${onKeyDown}
      onBlur=${() => (onAt(false), close())} />
    <ul class="choices" id=${`${id}-list`} role="listbox" aria-label=${label} ref=${list} hidden=${!shown.length}>${shown.map((option, i) => html`<li key=${option.key} id=${`${id}-${i}`}
      role="option" aria-selected=${i === active} onPointerDown=${(event) => event.preventDefault()} onClick=${() => choose(option)}>${draw(option)}</li>`)}</ul>
    <span class="sr" role="status">${isOpen && t("choice.count", { count: shown.length })}</span></span>`}</${Field}>`;
}
