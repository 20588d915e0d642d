// One listing in a row: its picture, its price beside the floor, and the cheapest signature that is still good.
import { useEffect } from "preact/hooks";
import { html } from "../../html.js";
import { percent, short } from "../../format.js";
import { watch } from "../../events.js";
import { nameOf, readPicture } from "../../items.js";
import { codeOf, floorOf, isCheaper, paperPriceOf, standOf } from "../../listing_state.js";
import { cyclesOf, listingOf } from "../../store.js";
import { t } from "../../texts.js";
import { faultOf, reasonOf } from "../../texts/reasons.js";
import { Icon } from "../../parts/icon.js";
import { Money } from "../../parts/money.js";
import { Picture } from "../../parts/picture.js";
import { useSeen } from "../../parts/seen.js";
import { NextCycle, State } from "../../parts/state.js";

export function ListingRow({ id }) {
  const [box, isSeen] = useSeen();
  useEffect(() => (isSeen ? watch(id, { kind: "autolist", cycles: 1 }) : undefined), [isSeen, id]);
  const task = listingOf(id).value;
  if (!task) return html`<li ref=${box} />`;
  const { inscriptionId, collectionId } = task;
  const name = nameOf(inscriptionId);
  return html`<li class="listings-row" data-row ref=${box}>
    <${Picture} of=${inscriptionId} letter=${name.slice(0, 1).toUpperCase()} read=${readPicture(inscriptionId)} />
    <div class="listings-who"><a class="listings-open" href=${`#/listings/${id}`}><b title=${inscriptionId}><bdi>${name}</bdi></b></a>
      <span class="quiet"><bdi>${collectionId || short(inscriptionId, 8, 6)}</bdi></span>
      <span class="listings-state">${standOf(task) === "sold" ? html`<span class="state on"><i aria-hidden="true" />${t("listings.is_sold")}</span>`
        : html`<${State} task=${task} kind="autolist" />${isSeen && html`<${NextCycle} task=${task} />`}`}</span></div>
    <${Prices} task=${task} cycles=${cyclesOf(id).value} />
    <${Said} task=${task} cycles=${cyclesOf(id).value} /></li>`;
}

function Prices({ task, cycles }) {
  const { listing } = task;
  const stand = standOf(task);
  const paper = task.config.dryRun ? paperPriceOf(cycles) : null;
  if (paper !== null) return html`<div class="listings-prices"><${Cell} label=${t("listings.paper")}><${Money} value=${paper} /></${Cell}></div>`;
  if (stand === "none") return html`<div class="listings-prices"><${Cell} label=${t("listings.price")}><span class="quiet">${t("listings.unlisted")}</span></${Cell}></div>`;
  if (stand === "sold") {
    return html`<div class="listings-prices"><${Cell} label=${t("listings.sold_at")}><${Money} value=${listing.price} /></${Cell}>
      <${Cell} label=${t("listings.received")}><span class="listings-good">★ <${Money} value=${listing.proceeds} /></span></${Cell}></div>`;
  }
  const floor = floorOf(cycles);
  const isLower = isCheaper(task);
  return html`<div class="listings-prices"><${Cell} label=${t(stand === "sale" ? "listings.price" : "listings.last")}><b><${Money} value=${listing.price} /></b></${Cell}>
    <${Cell} label=${t("listings.floor")}>${floor === undefined ? "" : html`<${Money} value=${floor} />`}${floor > 0 && html` <small>${t("listings.of_floor", { share: percent(listing.price / floor) })}</small>`}</${Cell}>
    <${Cell} label=${t("listings.lowest")}><span class=${isLower ? "listings-held" : ""} title=${t("listings.lowest.what")}>${isLower && html`<i aria-hidden="true" />`}<${Money} value=${listing.lowestOutstanding} /></span></${Cell}></div>`;
}

const Cell = ({ label, children }) => html`<div class="listings-cell"><span class="label">${label}</span>${children}</div>`;

/** What is wrong, what the last cycle decided, and one's own words for it. */
function Said({ task, cycles }) {
  const code = codeOf(cycles?.at(-1)?.detail);
  const reason = code && code !== "sold" && !task.config.dryRun && reasonOf(code);
  const fault = task.lastError && faultOf(task);
  if (!fault && !reason && !task.tags.length) return null;
  return html`<p class="listings-said">${fault && html`<span class="listings-fault"><${Icon} name="alert" /><span><b>${fault.title}</b> ${fault.why}</span></span>`}
    ${reason && html`<span class=${`tag ${reason.kind}`} title=${reason.why}>${reason.title}</span>`}
    ${task.tags.map((tag) => html`<span key=${tag} class="listings-tag"><bdi>${tag}</bdi></span>`)}</p>`;
}
