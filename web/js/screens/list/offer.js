// One item with its price: what a config comes to is shown as it is written; then it is created, and started.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../../html.js";
import { call } from "../../api.js";
import { readShapes } from "../../config_shape.js";
import { amount, short } from "../../format.js";
import { readItem, readPicture } from "../../items.js";
import { bodyOf, faultsOf, drawnFields, valuesOf } from "../../listing_config.js";
import { payoutOf } from "../../listing_state.js";
import { useAct, useLoad } from "../../load.js";
import { askPlan, usePlan } from "../../plan_listing.js";
import { goOn } from "../../router.js";
import { link, listings, quietly, readListings, venues, wallet } from "../../store.js";
import { t } from "../../texts.js";
import { Copyable } from "../../parts/copy.js";
import { confirmListing } from "../../parts/listing_confirm.js";
import { ListingForm } from "../../parts/listing_form.js";
import { ListingPlan } from "../../parts/listing_plan.js";
import { Picture } from "../../parts/picture.js";
import { Loaded, wordsOf } from "../../parts/states.js";
import { toast } from "../../parts/toast.js";
import { Again, SendHere } from "./grid.js";

export function Offer({ item }) {
  const head = useRef(null);
  const shapes = useLoad(readShapes);
  useEffect(() => (head.current.focus({ preventScroll: true }), scrollTo(0, 0)), []);
  const task = listings.value.find((each) => each.inscriptionId === item.id);
  const { vault } = wallet.value;
  const isAway = item.address !== null && item.address !== vault;
  const name = item.name || short(item.id, 8, 6);
  return html`<section class="panel list-item"><${Picture} of=${item.id} letter=${name.slice(0, 1).toUpperCase()} words=${t("list.picture", { name })} read=${readPicture(item.id)} />
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

