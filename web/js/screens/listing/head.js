// The head of a listing: where it stands, and the buttons that change that.
import { html } from "../../html.js";
import { nameOf } from "../../items.js";
import { standOf } from "../../listing_state.js";
import { useAct } from "../../load.js";
import { setQuery } from "../../router.js";
import { link, restraintOf } from "../../store.js";
import { t } from "../../texts.js";
import { faultOf } from "../../texts/reasons.js";
import { Icon } from "../../parts/icon.js";
import { NextCycle, State } from "../../parts/state.js";
import { deleteListing, startListing, stopListing } from "./acts.js";
import { priceWords } from "./words.js";

export function Head({ task, query }) {
  const { isBusy, run } = useAct();
  const isSold = standOf(task) === "sold";
  const isBarred = isBusy || link.value === "offline";
  const { state, scope } = restraintOf(task.id, "autolist");
  return html`<header class="page-head"><a class="button listing-back" href="#/listings" aria-label=${t("listing.back")}><${Icon} name="back" /></a>
      <div class="listing-name"><h1><bdi>${nameOf(task.inscriptionId)}</bdi></h1><div class="listing-sub">${isSold ? html`<span class="state on"><i aria-hidden="true" />${t("listing.sold")}</span>`
        : html`<${State} task=${task} kind="autolist" /><${NextCycle} task=${task} />`}<span class="quiet"><bdi>${priceWords(task.config)}</bdi></span></div></div>
      <div class="acts">${!(isSold && !task.isRunning) && html`<button class=${`button ${task.isRunning ? "" : "primary"}`} data-key="s" disabled=${isBarred} aria-busy=${isBusy}
          onClick=${() => run(() => (task.isRunning ? stopListing(task) : startListing(task)))}><${Icon} name=${task.isRunning ? "stop" : "play"} />${t(task.isRunning ? "listing.stop" : "listing.start")}</button>
        <button class="button" data-key="e" aria-pressed=${Boolean(query.edit)} onClick=${() => setQuery({ edit: query.edit ? "" : "1" })}><${Icon} name="edit" />${t(query.edit ? "listing.edit.end" : "listing.edit")}</button>`}
        <button class="button" disabled=${isBarred} onClick=${() => run(() => deleteListing(task))}><${Icon} name="trash" />${t("listing.delete")}</button></div></header>
    ${task.lastError && html`<${Trouble} task=${task} />`}
    ${state !== "run" && html`<div class="note"><p>${t("listing.held", { state: t(`state.${state}`), by: t(`brake.by.${scope}`) })}</p></div>`}`;
}

function Trouble({ task }) {
  const { title, why } = faultOf(task);
  return html`<div class="note bad" role="alert"><b>${title}</b>${why && html`<span>${why}</span>`}${task.lastError !== title && html`<small class="quiet">${task.lastError}</small>`}</div>`;
}
