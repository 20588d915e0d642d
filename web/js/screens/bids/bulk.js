// Many tasks chosen, and one thing done to all of them: each has its own answer.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { html } from "../../html.js";
import { useAct } from "../../load.js";
import { dropTasks, leave, link, readTasks, quietly, stay, taskOf } from "../../store.js";
import { t } from "../../texts.js";
import { Refusal } from "../../api.js";
import { confirmed } from "../../parts/dialog.js";
import { Icon } from "../../parts/icon.js";
import { wordsOf } from "../../parts/states.js";
import { toast } from "../../parts/toast.js";
import { act } from "./act.js";
import { TagDialog } from "./tags.js";

/** Ids of the chosen tasks. */
export const chosen = signal(new Set());

function choose(ids, isOn) {
  const next = new Set(chosen.peek());
  for (const id of ids) isOn ? next.add(id) : next.delete(id);
  chosen.value = next;
}

export const ChooseBox = ({ id }) => html`<input class="choose" type="checkbox" checked=${chosen.value.has(id)} aria-label=${t("bids.choose", { name: taskOf(id).value?.slug })}
  onChange=${(event) => choose([id], event.target.checked)} />`;

const numbers = {
  start(list) {
    const fresh = list.filter((task) => !task.isRunning);
    const real = fresh.filter((task) => !task.config.dryRun);
    return { real: real.length, most: real.reduce((sum, task) => sum + task.config.bidCount, 0), paper: fresh.length - real.length, running: list.length - fresh.length };
  },
  stop(list) {
    const real = list.filter((task) => !task.config.dryRun);
    return { cancel: real.filter((task) => task.config.cancelOnStop).length, stay: real.filter((task) => !task.config.cancelOnStop).length };
  },
};

/** What is asked before each action. */
const QUESTIONS = {
  start(list) {
    const said = numbers.start(list);
    return { lines: ["what", "paper", "running"].map((each) => t(`bids.start.${each}`, said)), isDanger: false };
  },
  stop(list) {
    const said = numbers.stop(list);
    return { lines: [t("bids.stop.cancel", { count: said.cancel }), t("bids.stop.stay", { count: said.stay })] };
  },
  delete: (list) => ({ lines: [t("bids.delete.what")], type: String(list.length) }),
};

export function Bulk({ shown }) {
  const [undone, setUndone] = useState([]);
  const [isTagging, setTagging] = useState(false);
  const { isBusy, run } = useAct();
  const here = shown.filter((task) => chosen.value.has(task.id));
  const isOffline = link.value === "offline";
  const carryOut = (action, wishes) => run(async () => {
    setUndone([]);
    const all = wishes.flatMap((each) => each.ids);
    if (action === "delete") leave(all);
    let gone = [];
    try {
      const { done, undone: left } = await act(action, wishes);
      if (action === "delete") dropTasks((gone = done));
      if (done.length) toast(t(`bids.done.${action}`, { count: done.length }));
      setUndone(left.map(({ id, status, body }) => [taskOf(id).peek()?.slug || id, wordsOf(new Refusal(status, body), { isStop: action === "stop" })]));
      choose(done, false);
    } catch (refusal) {
      toast(wordsOf(refusal, { isStop: action === "stop" }), { isBad: true });
    }
    if (action === "delete") stay(all.filter((id) => !gone.includes(id)));
    quietly(readTasks());
  });
  const ask = async (action) => {
    const question = { title: t(`bids.${action}.title`, { count: here.length }), act: t(`bids.${action}`), ...QUESTIONS[action](here) };
    if (await confirmed(question)) await carryOut(action, [{ ids: here.map((task) => task.id) }]);
  };
  return html`<div class="bulk"><label class="check"><input type="checkbox" checked=${here.length > 0 && here.length === shown.length}
      onChange=${(event) => choose(shown.map((task) => task.id), event.target.checked)} /><span>${t("bids.choose.all")}</span></label>
    <span class="quiet" role="status">${here.length ? t("bids.chosen", { count: here.length }) : t("bids.chosen.none")}</span>
    <span class="bulk-acts">${here.length > 0 && ["start", "stop", "delete"].map((action) => html`<button key=${action} class="button" disabled=${isBusy || isOffline} onClick=${() => ask(action)}>
      <${Icon} name=${{ start: "play", stop: "stop", delete: "trash" }[action]} />${t(`bids.${action}`)}</button>`)}
      ${here.length > 0 && html`<button class="button" disabled=${isBusy || isOffline} onClick=${() => setTagging(true)}>${t("bids.tags")}</button>`}</span>
    ${undone.length > 0 && html`<div class="note bad" role="alert"><b>${t("bids.undone", { count: undone.length })}</b>
      <ul>${undone.map(([slug, words]) => html`<li key=${slug}><b><bdi>${slug}</bdi></b> ${words}</li>`)}</ul>
      <button class="button" onClick=${() => setUndone([])}>${t("bids.undone.close")}</button></div>`}
    ${isTagging && html`<${TagDialog} list=${here} onClose=${() => setTagging(false)} onDone=${(wishes) => (setTagging(false), carryOut("change", wishes))} />`}</div>`;
}
