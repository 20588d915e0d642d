// A "?" next to a term, and what the term means: by pointer, key or touch; Escape or a click elsewhere closes it.
import { useId, useRef } from "preact/hooks";
import { html, t } from "../page.js";
import { TERMS } from "../texts/glossary.js";

const WIDE = 300;
const TALL = 150;
const EDGE = 8;

/** `of` names a term of texts/glossary.js. */
export function Term({ of }) {
  const id = useId();
  const button = useRef(null);
  const [name, what] = TERMS[of];
  // Below the button, within the window; above it near the foot.
  const place = ({ target, newState }) => {
    if (newState !== "open") return;
    const { left, top, bottom } = button.current.getBoundingClientRect();
    const isLow = bottom + TALL > innerHeight;
    Object.assign(target.style, {
      left: `${Math.max(EDGE, Math.min(left, innerWidth - WIDE - EDGE))}px`,
      top: isLow ? "auto" : `${bottom + EDGE}px`,
      bottom: isLow ? `${innerHeight - top + EDGE}px` : "auto",
    });
  };
  return html`<span class="term"><button ref=${button} type="button" class="term-ask" aria-label=${t("term.ask", { name })} popovertarget=${id} />
    <span id=${id} class="term-what" popover="auto" onBeforeToggle=${place}><strong>${name}</strong> ${what}</span></span>`;
}
