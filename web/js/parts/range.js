// A slider with two handles: each a slider of the browser's own, so that both have keys and names.
import { html } from "../page.js";

/** `low` and `high` between `min` and `max`; `onChange` gets both. `names`: what the handles are called; `say` puts a value into words. */
export function Range({ low, high, min, max, step, names, say, onChange }) {
  const at = (value) => Math.min(max, Math.max(min, value ?? min));
  const share = (value) => `${(100 * (at(value) - min)) / (max - min)}%`;
  const handle = (value, name, take) => html`<input type="range" min=${min} max=${max} step=${step} value=${at(value)} aria-label=${name}
    aria-valuetext=${say(value)} onInput=${(event) => take(Number(event.target.value))} />`;
  return html`<div class="range"><span class="range-track" aria-hidden="true"><i style=${{ left: share(low), right: `calc(100% - ${share(high)})` }} /></span>
    ${handle(low, names[0], (value) => onChange(value, Math.max(value, high)))}${handle(high, names[1], (value) => onChange(Math.min(value, low), value))}</div>`;
}
