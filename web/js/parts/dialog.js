// A dialog of the browser's own: focus stays in it, Esc ends it, and the harmless button is the first.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { place } from "../router.js";
import { t } from "../texts.js";

const asked = signal(null);

function end(answer) {
  const question = asked.peek();
  asked.value = null;
  question?.resolve(answer);
}

// Who leaves a screen has not agreed to what it asked.
let path = place.peek().path;
place.subscribe((next) => {
  if (next.path !== path) end(false);
  path = next.path;
});

/**
 * Asks before something that cannot be taken back; resolves to whether it shall be done.
 * `lines` say what happens, with its numbers; one that is a function is told anew whenever a signal that it reads changes.
 * `type` is a text that must be typed first.
 */
export function confirmed({ title, lines, act, type = null, isDanger = true }) {
  end(false); // nobody can answer the one before any more
  return new Promise((resolve) => {
    asked.value = { title, lines, act, type, isDanger, resolve };
  });
}

export function Dialog({ title, onClose, children, wide = false }) {
  const box = useRef(null);
  const isPressedBeside = useRef(false);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog class=${wide ? "wide" : ""} ref=${box} aria-label=${title} onCancel=${(event) => (event.preventDefault(), onClose())}
    onPointerDown=${(event) => (isPressedBeside.current = event.target === box.current)}
    onClick=${(event) => event.target === box.current && isPressedBeside.current && onClose()}>
    <div class="dialog-body"><h2>${title}</h2>${children}</div></dialog>`;
}

export function Confirmations() {
  const question = asked.value;
  const [typed, setTyped] = useState("");
  useEffect(() => setTyped(""), [question]);
  if (!question) return null;
  const isReady = question.type === null || typed.trim() === question.type;
  return html`<${Dialog} title=${question.title} onClose=${() => end(false)}>
    ${question.lines.filter(Boolean).map((line) => html`<p>${typeof line === "function" ? line() : line}</p>`)}
    ${question.type !== null && html`<label class="field"><span>${t("dialog.type", { text: question.type })}</span>
      <input autocomplete="off" spellcheck="false" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>`}
    <div class="dialog-acts"><button class="button" autofocus onClick=${() => end(false)}>${t("cancel")}</button>
      <button class=${`button ${question.isDanger ? "danger" : "primary"}`} disabled=${!isReady} onClick=${() => end(true)}>${question.act}</button></div>
  </${Dialog}>`;
}
