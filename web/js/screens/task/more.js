// What is seldom done with a task: its own brake, another one like it, its end.
import { useState } from "preact/hooks";
import { html } from "../../html.js";
import { useAct } from "../../load.js";
import { control, link } from "../../store.js";
import { t } from "../../texts.js";
import { Dialog } from "../../parts/dialog.js";
import { TextField } from "../../parts/field.js";
import { Icon } from "../../parts/icon.js";
import { wordsOf } from "../../parts/states.js";
import { brakeTask, cloneTask, deleteTask } from "./acts.js";

const STATES = ["run", "reduce", "halt"];

export function More({ task, onClose }) {
  const [slug, setSlug] = useState("");
  const [fault, setFault] = useState("");
  const { isBusy, run } = useAct();
  const own = control.value?.tasks.find((each) => each.taskId === task.id)?.state || "run";
  const isOffline = link.value === "offline";
  // The questions that these ask take this dialog's place.
  const instead = (act) => (onClose(), act());
  const clone = (event) => {
    event.preventDefault();
    if (slug.trim() === task.slug) return setFault(t("clone.same"));
    return run(() => cloneTask(task, slug.trim()).then(onClose, (refusal) => setFault(wordsOf(refusal))));
  };
  return html`<${Dialog} title=${t("task.more.title", { name: task.slug })} onClose=${onClose}><div class="more-acts">
    <section><h3>${t("task.brake")}</h3><div class="segments" role="group" aria-label=${t("task.brake")}>${STATES.map((state) => html`<button key=${state} type="button"
      aria-pressed=${own === state} class=${own === state ? "on" : ""} disabled=${isOffline && state !== "halt"} onClick=${() => own !== state && instead(() => brakeTask(task, state, own))}>${t(`brake.${state}`)}</button>`)}</div>
      <small class="quiet">${t("task.brake.what")}</small></section>
    <form onSubmit=${clone}><h3>${t("task.clone")}</h3><${TextField} label=${t("task.clone.slug")} hint=${t("task.clone.hint")} fault=${fault} value=${slug} required onChange=${(value) => (setSlug(value), setFault(""))} />
      <button class="button" disabled=${isBusy || isOffline || !slug.trim()}><${Icon} name="plus" />${t("task.clone.do")}</button></form>
    <section><h3>${t("task.delete")}</h3><small class="quiet">${t("task.delete.what")}</small>
      <button class="button danger" disabled=${isOffline} onClick=${() => instead(() => deleteTask(task))}><${Icon} name="trash" />${t("task.delete")}</button></section></div>
    <div class="dialog-acts"><button class="button" autofocus onClick=${onClose}>${t("close")}</button></div></${Dialog}>`;
}
