// What the keys do, and a way to any task by its name.
import { useState } from "preact/hooks";
import { html, t } from "../page.js";
import { KEYS, opened } from "../keys.js";
import { go } from "../router.js";
import { listings, tasks } from "../store.js";
import { Dialog } from "./states.js";

export function HelpAndSearch() {
  const end = () => (opened.value = null);
  if (opened.value === "help") {
    return html`<${Dialog} title=${t("keys.title")} onClose=${end}><dl class="keys">${KEYS.map(([keys, name, values]) => html`<div key=${keys}>
      <dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${t(name, values)}</dd></div>`)}</dl>
      <div class="dialog-acts"><button class="button" autofocus onClick=${end}>${t("close")}</button></div></${Dialog}>`;
  }
  return opened.value === "search" ? html`<${Search} onClose=${end} />` : null;
}

const plain = (text) => text.toLowerCase().replace(/[•\s_-]/g, "");

function Search({ onClose }) {
  const [typed, setTyped] = useState("");
  const all = [
    ...(tasks.value || []).map((task) => ({ path: `/tasks/${task.id}`, name: task.slug, kind: t("nav.bids") })),
    ...(listings.value || []).map((task) => ({ path: `/listings/${task.id}`, name: `${task.collectionId || ""} ${task.inscriptionId}`, kind: t("nav.listings") })),
  ];
  const found = all.filter((each) => plain(each.name).includes(plain(typed))).slice(0, 8);
  const open = (event) => {
    event.preventDefault();
    if (!found.length) return;
    onClose();
    go(found[0].path);
  };
  // A search field takes the first Escape for its text.
  const leaveByEscape = (event) => event.key === "Escape" && (event.preventDefault(), onClose());
  return html`<${Dialog} title=${t("word.search")} onClose=${onClose}><form onSubmit=${open}>
    <label class="field"><span>${t("search.label")}</span><input type="search" autofocus autocomplete="off" spellcheck=${false} value=${typed} onKeyDown=${leaveByEscape} onInput=${(event) => setTyped(event.target.value)} /></label></form>
    <ul class="found">${found.map((each) => html`<li key=${each.path}><a href=${`#${each.path}`} onClick=${onClose}><b>${each.name}</b><span>${each.kind}</span></a></li>`)}</ul>
    ${!found.length && html`<p class="quiet">${t("search.none")}</p>`}</${Dialog}>`;
}
