// An item of one's own is put on the market: first which, then at what price.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call } from "../api.js";
import { Empty, Loaded, Refused, Skeleton, showRefusal, toast, useAct, useLoad, wordsOf } from "../parts/states.js";
import { readShapes } from "../config_shape.js";
import { amount, short } from "../format.js";
import { Picture, itemOf, items, nameOf, readItem, readItems, readPicture } from "../parts/picture.js";
import { faultsOf } from "../parts/field.js";
import { bodyOf, drawnFields, payoutOf, valuesOf } from "../listing_state.js";
import { inscriptionIn } from "../pasted.js";
import { goOn, setQuery } from "../router.js";
import { link, listings, quietly, readListings, readVenues, readWallet, venues, wallet } from "../store.js";
import { Copyable, Icon } from "../parts/basics.js";
import { ListingForm } from "../parts/listing_form.js";
import { ListingPlan, askPlan, confirmListing, usePlan } from "../parts/listing_plan.js";
import "../texts/list_item.js";

const plain = (text) => text.toLowerCase().replace(/[\s_-]/g, "");
const fits = (item, words) => !words || plain([item.name, item.id, item.collectionId, item.collectionName].join(" ")).includes(words);

function Grid({ query }) {
  const { vault, ordinalsAddress } = wallet.value;
  const words = inscriptionIn(query.q || "") || plain(query.q || "");
  const shown = items.value.filter((item) => fits(item, words));
  const inVault = shown.filter((item) => item.address === vault);
  const elsewhere = shown.filter((item) => item.address !== vault);
  return html`<div class="list-choice" role="search"><label class="field"><span>${t("list.find")}</span><input type="search" autocomplete="off" spellcheck=${false} value=${query.q || ""}
        onInput=${(event) => setQuery({ q: inscriptionIn(event.target.value) || event.target.value })} /></label><${Again} /></div>
    <section class="panel" aria-labelledby="vault-title"><header class="panel-head"><h2 id="vault-title">${t("list.vault")}<span class="count">${inVault.length}</span></h2></header>
      ${inVault.length ? html`<ul class="list-grid">${inVault.map((item) => html`<${Card} key=${item.id} item=${item} isHere />`)}</ul>`
        : words ? html`<${Empty} action=${html`<button class="button" onClick=${() => setQuery({ q: "" })}>${t("word.show_all")}</button>`}>${t("list.nothing")}</${Empty}>`
          : html`<${Empty} title=${t("list.none")}><${SendHere} vault=${vault} /></${Empty}>`}</section>
    ${elsewhere.length > 0 && html`<section class="panel" aria-labelledby="elsewhere-title"><header class="panel-head"><h2 id="elsewhere-title">${t("list.elsewhere")}<span class="count">${elsewhere.length}</span></h2></header>
      <div class="panel-body"><p class="note"><${SendHere} vault=${vault} /></p></div>
      <ul class="list-grid">${elsewhere.map((item) => html`<${Card} key=${item.id} item=${item} address=${ordinalsAddress} />`)}</ul></section>`}
    ${items.value.length >= 500 && html`<p class="quiet">${t("list.most")}</p>`}`;
}

/** Where an item has to go before it can be listed. */
const SendHere = ({ vault }) => html`<span>${t("list.send")} <${Copyable} text=${vault} name=${t("list.vault.address")} /></span>`;

function Again() {
  const { isBusy, run } = useAct();
  const again = () => run(() => readItems({ fresh: true }).catch((refusal) => showRefusal(refusal, { isRead: true })));
  return html`<button class="button" disabled=${isBusy} aria-busy=${isBusy} onClick=${again}>${t("word.look_again")}</button>`;
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

export function Offer({ item }) {
  const head = useRef(null);
  const shapes = useLoad(readShapes);
  useEffect(() => (head.current.focus({ preventScroll: true }), scrollTo(0, 0)), []);
  const task = listings.value.find((each) => each.inscriptionId === item.id);
  const { vault } = wallet.value;
  const isAway = item.address !== null && item.address !== vault;
  const name = item.name || short(item.id, 8, 6);
  return html`<section class="panel list-item"><${Picture} of=${item.id} letter=${name.slice(0, 1).toUpperCase()} words=${t("word.picture_of", { name })} read=${readPicture(item.id)} />
      <div><h2 tabindex="-1" ref=${head}><bdi>${name}</bdi></h2><p class="quiet"><bdi>${item.collectionName || item.collectionId}</bdi></p>
        <${Copyable} text=${item.id} head=${8} tail=${6} name=${t("list.id")} />
        ${item.listed && !task && html`<p class="quiet">${t("list.adopts", { price: amount(item.listingPrice) })}</p>`}</div></section>
    ${task ? html`<div class="note"><p>${t("list.has_task.what")}</p><a class="button" href=${`#/listings/${task.id}`}>${t("list.has_task.do")}</a></div>`
      : isAway ? html`<div class="note"><p>${t("list.away", { address: short(item.address, 10, 8) })}</p><p><${SendHere} vault=${vault} /></p><${Again} /></div>`
        : html`<${Loaded} from=${shapes} rows=${1} tall=${480}>${() => html`<${Form} item=${item} name=${name} />`}</${Loaded}>`}`;
}

function Form({ item, name }) {
  const [values, setValues] = useState(valuesOf);
  const [venue, setVenue] = useState(null);
  const [refused, setRefused] = useState(null);
  const { isBusy, run } = useAct();
  const selling = (venues.value || []).filter((each) => each.listings);
  const chosen = venue || selling.find((each) => each.isDefault)?.name || selling[0]?.name;
  const isDefault = selling.find((each) => each.name === chosen)?.isDefault ?? true;
  const traits = useLoad((abort) => (values.reference === "traitFloor" ? readItem(item.id, abort).then((detail) => detail.traits || []) : Promise.resolve(null)), [values.reference === "traitFloor"]);
  // The name of a collection is one marketplace's word: another one is asked for its own.
  const named = item.collectionId && isDefault ? { collectionId: item.collectionId } : {};
  const body = { inscriptionId: item.id, ...named, ...(isDefault ? {} : { venue: chosen }), ...bodyOf(values) };
  const plan = usePlan(body);
  const details = (refused || plan.refusal)?.details || [];
  const faults = faultsOf(details, ["venue", ...drawnFields(values)]);
  const set = (change) => {
    setRefused(null);
    if ("venue" in change) setVenue(change.venue);
    else setValues((old) => ({ ...old, ...change }));
  };
  const act = (isStarted) => run(async () => {
    setRefused(null);
    try {
      if (isStarted && !(await confirmListing({ name, config: values, plan: await askPlan(body) }))) return;
      await create(body, isStarted);
    } catch (refusal) {
      setRefused(refusal);
    }
  });
  const isOffline = link.value === "offline";
  return html`<div class="two sell-two"><form class="panel sell-form" novalidate aria-label=${t("list.form")} onSubmit=${(event) => event.preventDefault()}>
      <${ListingForm} values=${{ ...values, venue: chosen }} set=${set} faults=${faults} traits=${traits.value} venues=${selling} />
      ${(faults[""] || (refused && !details.length)) && html`<div class="note bad" role="alert"><p>${faults[""] || wordsOf(refused)}</p></div>`}
      <div class="sell-acts"><p class="sell-sum">${plan.plan?.price && html`<b>${amount(plan.plan.price)}</b>${payoutOf(plan.plan) !== null && html` <span class="quiet">${t("list.sum", { payout: amount(payoutOf(plan.plan)) })}</span>`}`}</p><button type="button" class="button" disabled=${isBusy || isOffline} onClick=${() => act(false)}>${t("list.create")}</button>
        <button type="button" class="button primary" disabled=${isBusy || isOffline || !plan.plan} aria-busy=${isBusy} onClick=${() => act(true)}>${t(values.dryRun ? "list.start.dry" : "list.start")}</button></div></form>
    <${ListingPlan} ...${plan} /></div>`;
}

/** Creates the task, then starts it; one that was created and not started says so on its own page. */
async function create(body, isStarted) {
  const made = await call("POST", "/autolist", body);
  let words = t("list.created");
  let isBad = false;
  if (isStarted) {
    try {
      await call("POST", `/autolist/${made.id}/start`);
      words = t(body.dryRun ? "list.started.dry" : "list.started");
    } catch (refusal) {
      words = `${t("list.not_started")} ${wordsOf(refusal)}`;
      isBad = true;
    }
  }
  quietly(readListings());
  goOn("/list", `/listings/${made.id}`);
  toast(words, { isBad });
}

export default function ListItem({ query }) {
  const { collection = "" } = query;
  const inscription = inscriptionIn(query.inscription || "") || query.inscription || "";
  const load = useLoad((abort) => Promise.all([items.peek() || readItems({ abort }), wallet.peek() || readWallet(), listings.peek() || readListings()]));
  useEffect(() => void (venues.peek() || quietly(readVenues())), []);
  const isKnown = items.value && wallet.value && listings.value;
  return html`<div class="page"><header class="page-head"><a class="button list-back" href=${inscription ? "#/list" : "#/listings"} aria-label=${t(inscription ? "list.back.grid" : "word.all_listings")}><${Icon} name="back" /></a>
      <h1>${t("word.list_an_item")}</h1></header>
    ${isKnown ? inscription
      ? html`<${Offer} key=${inscription} item=${itemOf(inscription) || { id: inscription, name: null, collectionId: collection || null, address: null }} />`
      : html`<${Grid} query=${query} />`
      : load.refusal ? html`<${Refused} refusal=${load.refusal} again=${load.again} />` : html`<${Skeleton} rows=${2} tall=${260} />`}</div>`;
}
