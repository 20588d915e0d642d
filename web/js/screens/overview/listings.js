// What is for sale: picture, price, and the cheapest signature that is still good.
import { html, t } from "../../page.js";
import { short, unitName } from "../../format.js";
import { get } from "../../api.js";
import { useListingRow } from "../../rows.js";
import { lastCycleOf, listingIds, listingOf } from "../../store.js";
import { Money } from "../../parts/basics.js";
import { Picture } from "../../parts/picture.js";
import { Said } from "../../parts/said.js";
import { NextCycle, State } from "../../parts/state.js";
import { Empty, Skeleton } from "../../parts/states.js";
import { Fault } from "../../parts/task_table.js";

const MOST = 8;

export function Listings() {
  const ids = listingIds.value;
  return html`<section class="panel" aria-labelledby="listings-title">
    <header class="panel-head"><h2 id="listings-title">${t("word.listings")}${ids && html`<span class="count">${ids.length}</span>`}</h2>
      <span class="panel-acts"><u>${unitName()}</u><a class="link" href="#/listings">${t("word.all_listings")}</a></span></header>
    ${!ids ? html`<div class="panel-body"><${Skeleton} rows=${1} tall=${64} /></div>`
      : !ids.length ? html`<${Empty} action=${html`<a class="button" href="#/list">${t("word.list_an_item")}</a>`}>${t("overview.listings.none")}</${Empty}>`
        : html`<ul>${ids.slice(0, MOST).map((id) => html`<${ListingRow} key=${id} id=${id} />`)}</ul>`}</section>`;
}

function ListingRow({ id }) {
  const [box, isSeen] = useListingRow(id);
  const task = listingOf(id).value;
  if (!task) return html`<li ref=${box} />`;
  const cycle = lastCycleOf(id);
  const { listing, collectionId, inscriptionId } = task;
  const name = collectionId || inscriptionId;
  return html`<li class="listing-row" data-row ref=${box}>
    <${Picture} of=${inscriptionId} letter=${name.slice(0, 1).toUpperCase()} read=${(abort) => get(`/autolist/item/${inscriptionId}/image`, { abort })} />
    <div class="who"><a class="cover" href=${`#/listings/${id}`}><b title=${inscriptionId}>${short(inscriptionId, 8, 4)}</b></a><span class="quiet"><bdi>${collectionId}</bdi></span>
      <span class="how"><${State} task=${task} kind="autolist" />${isSeen && html`<${NextCycle} task=${task} />`}</span></div>
    <div class="listing-prices"><${Prices} listing=${listing} /></div>
    <p class="said">${task.lastError && html`<${Fault} task=${task} />`}<${Said} said=${cycle && (cycle.detail || {})} /></p></li>`;
}

function Prices({ listing }) {
  if (!listing) return html`<${Price} label=${t("overview.unlisted")} value=${null} />`;
  if (listing.closeReason === "sold") return html`<${Price} label=${t("overview.sold")} value=${listing.proceeds ?? listing.price} name="good-text" star />`;
  const isLower = listing.lowestOutstanding !== null && listing.lowestOutstanding < listing.price;
  return html`<${Price} label=${t(listing.state === "closed" ? "word.last_price" : "overview.listed")} value=${listing.price} />
    <${Price} label=${t("overview.lowest")} value=${listing.lowestOutstanding} name=${isLower ? "held-text" : ""} why=${t("overview.lowest.why")} />`;
}

const Price = ({ label, value, name = "", why, star = false }) => html`<div class="cell" title=${why}><span class="label">${label}</span>
  <span class=${name}>${star && "★ "}<${Money} value=${value} /></span></div>`;
