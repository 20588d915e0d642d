// Tags of many tasks: one is added to all of them, or taken off all that have it.
import { useState } from "preact/hooks";
import { html } from "../../html.js";
import { t } from "../../texts.js";
import { Dialog } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";

/** Wishes for act(): tasks whose tags become the same go together. */
function changes(list, tagsOf) {
  const groups = new Map();
  for (const task of list) {
    const tags = tagsOf(task.tags);
    if (String(tags) === String(task.tags)) continue;
    const key = JSON.stringify(tags);
    groups.set(key, [...(groups.get(key) || []), task.id]);
  }
  return [...groups].map(([tags, ids]) => ({ ids, change: { tags: JSON.parse(tags) } }));
}

export function TagDialog({ list, onClose, onDone }) {
  const [typed, setTyped] = useState("");
  const tag = typed.trim();
  const there = [...new Set(list.flatMap((task) => task.tags))].sort();
  const add = (event) => {
    event.preventDefault();
    if (tag) onDone(changes(list, (tags) => (tags.includes(tag) ? tags : [...tags, tag])));
  };
  return html`<${Dialog} title=${t("bids.tags.title", { count: list.length })} onClose=${onClose}>
    ${there.length ? html`<p class="bulk-tags">${there.map((each) => html`<button key=${each} class="chip" aria-label=${t("bids.tags.take", { tag: each })}
      onClick=${() => onDone(changes(list, (tags) => tags.filter((one) => one !== each)))}><bdi>${each}</bdi><${Icon} name="close" /></button>`)}</p>` : html`<p class="quiet">${t("bids.tags.none")}</p>`}
    <form onSubmit=${add}><label class="field"><span>${t("bids.tags.add")}</span><input autofocus maxlength="40" autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
      <div class="dialog-acts"><button type="button" class="button" onClick=${onClose}>${t("cancel")}</button><button class="button primary" disabled=${!tag}>${t("bids.tags.do")}</button></div></form></${Dialog}>`;
}
