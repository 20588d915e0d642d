// All inscriptions at one's addresses, with their pictures: those in the vault can be listed.
import { html } from "../../html.js";
import { amount, short } from "../../format.js";
import { items, nameOf, readItems, readPicture } from "../../items.js";
import { useAct } from "../../load.js";
import { setQuery } from "../../router.js";
import { inscriptionIn } from "../../pasted.js";
import { listings, wallet } from "../../store.js";
import { t } from "../../texts.js";
import { Copyable } from "../../parts/copy.js";
import { Picture } from "../../parts/picture.js";
import { Empty, wordsOf } from "../../parts/states.js";
import { toast } from "../../parts/toast.js";

const plain = (text) => text.toLowerCase().replace(/[\s_-]/g, "");
const fits = (item, words) => !words || plain([item.name, item.id, item.collectionId, item.collectionName].join(" ")).includes(words);

export function Grid({ query }) {
  const { vault, ordinalsAddress } = wallet.value;
  const words = inscriptionIn(query.q || "") || plain(query.q || "");
  const shown = items.value.filter((item) => fits(item, words));
  const inVault = shown.filter((item) => item.address === vault);
  const elsewhere = shown.filter((item) => item.address !== vault);
  return html`<div class="list-choice" role="search"><label class="field"><span>${t("list.find")}</span><input type="search" autocomplete="off" spellcheck="false" value=${query.q || ""}
        onInput=${(event) => setQuery({ q: inscriptionIn(event.target.value) || event.target.value })} /></label><${Again} /></div>
    <section class="panel" aria-labelledby="vault-title"><header class="panel-head"><h2 id="vault-title">${t("list.vault")}<span class="count">${inVault.length}</span></h2></header>
      ${inVault.length ? html`<ul class="list-grid">${inVault.map((item) => html`<${Card} key=${item.id} item=${item} isHere />`)}</ul>`
        : words ? html`<${Empty} action=${html`<button class="button" onClick=${() => setQuery({ q: "" })}>${t("list.nothing.do")}</button>`}>${t("list.nothing")}</${Empty}>`
          : html`<${Empty} title=${t("list.none")}><${SendHere} vault=${vault} /></${Empty}>`}</section>
    ${elsewhere.length > 0 && html`<section class="panel" aria-labelledby="elsewhere-title"><header class="panel-head"><h2 id="elsewhere-title">${t("list.elsewhere")}<span class="count">${elsewhere.length}</span></h2></header>
      <div class="panel-body"><p class="note"><${SendHere} vault=${vault} /></p></div>
      <ul class="list-grid">${elsewhere.map((item) => html`<${Card} key=${item.id} item=${item} address=${ordinalsAddress} />`)}</ul></section>`}
    ${items.value.length >= 500 && html`<p class="quiet">${t("list.most")}</p>`}`;
}

/** Where an item has to go before it can be listed. */
export const SendHere = ({ vault }) => html`<span>${t("list.send")} <${Copyable} text=${vault} name=${t("list.vault.address")} /></span>`;

export function Again() {
  const { isBusy, run } = useAct();
  const again = () => run(() => readItems({ fresh: true }).catch((refusal) => toast(wordsOf(refusal, { isRead: true }), { isBad: true })));
  return html`<button class="button" disabled=${isBusy} aria-busy=${isBusy} onClick=${again}>${t("list.again")}</button>`;
}

function Card({ item, isHere = false }) {
  const task = listings.value.find((each) => each.inscriptionId === item.id);
  const name = nameOf(item.id);
  const body = html`<${Picture} of=${item.id} letter=${name.slice(0, 1).toUpperCase()} read=${readPicture(item.id)} />
    <b title=${item.id}><bdi>${name}</bdi></b><span class="quiet"><bdi>${item.collectionName || item.collectionId || short(item.id, 8, 6)}</bdi></span>
    ${task ? html`<span class="tag do">${t("list.has_task")}</span>` : item.listed && html`<span class="tag wait">${t("list.by_hand", { price: amount(item.listingPrice) })}</span>`}`;
  const to = task ? `#/listings/${task.id}` : `#/list?${new URLSearchParams({ inscription: item.id, ...(item.collectionId ? { collection: item.collectionId } : {}) })}`;
  return html`<li class="list-card">${isHere || task ? html`<a href=${to} data-row>${body}</a>` : html`<div class="list-away">${body}</div>`}</li>`;
}
