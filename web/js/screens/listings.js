// All that is for sale, or was: where its price stands, and what is the least that anybody can buy it for.
import { computed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html, t } from "../page.js";
import { watch } from "../events.js";
import { percent, short, unitName } from "../format.js";
import { Picture, items, nameOf, readItems, readPicture } from "../parts/picture.js";
import { Named } from "../parts/face.js";
import { codeOf, floorOf, isCheaper, paperPriceOf, standOf } from "../listing_state.js";
import { Empty, Refused, Skeleton, useLoad } from "../parts/states.js";
import { setQuery } from "../router.js";
import { cyclesOf, listingIds, listingOf, listings, quietly, readListings } from "../store.js";
import { Segments } from "../parts/field.js";
import { Icon, Money } from "../parts/basics.js";
import { Term } from "../parts/term.js";
import { useSeen } from "../rows.js";
import { NextCycle, State } from "../parts/state.js";
import { faultOf, reasonOf } from "../texts/reasons.js";
import "../texts/listings.js";

function ListingRow({ id }) {
  const [box, isSeen] = useSeen();
  useEffect(() => (isSeen ? watch(id, { kind: "autolist", cycles: 1 }) : undefined), [isSeen, id]);
  const task = listingOf(id).value;
  if (!task) return html`<li ref=${box} />`;
  const { inscriptionId, collectionId } = task;
  const name = nameOf(inscriptionId);
  return html`<li class="listings-row" data-row ref=${box}>
    <${Picture} of=${inscriptionId} letter=${name.slice(0, 1).toUpperCase()} read=${readPicture(inscriptionId)} />
    <div class="listings-who"><a class="listings-open" href=${`#/listings/${id}`}><b title=${inscriptionId}><bdi>${name}</bdi></b></a>
      <span class="quiet">${collectionId ? html`<${Named} venue=${task.venue} slug=${collectionId} />` : short(inscriptionId, 8, 6)}</span>
      <span class="listings-state">${standOf(task) === "sold" ? html`<span class="state on"><i aria-hidden="true" />${t("word.sold")}</span>`
        : html`<${State} task=${task} kind="autolist" />${isSeen && html`<${NextCycle} task=${task} />`}`}</span></div>
    <${Prices} task=${task} cycles=${cyclesOf(id).value} />
    <${Said} task=${task} cycles=${cyclesOf(id).value} /></li>`;
}

function Prices({ task, cycles }) {
  const { listing } = task;
  const stand = standOf(task);
  const paper = task.config.dryRun ? paperPriceOf(cycles) : null;
  if (paper !== null) return html`<div class="listings-prices"><${Cell} label=${t("listings.paper")}><${Money} value=${paper} /></${Cell}></div>`;
  if (stand === "none") return html`<div class="listings-prices"><${Cell} label=${t("word.price")}><span class="quiet">${t("listings.unlisted")}</span></${Cell}></div>`;
  if (stand === "sold") {
    return html`<div class="listings-prices"><${Cell} label=${t("word.sold_at")}><${Money} value=${listing.price} /></${Cell}>
      <${Cell} label=${t("word.you_received")}><span class="listings-good">★ <${Money} value=${listing.proceeds} /></span></${Cell}></div>`;
  }
  const floor = floorOf(cycles);
  const isLower = isCheaper(task);
  return html`<div class="listings-prices"><${Cell} label=${t(stand === "sale" ? "word.price" : "word.last_price")}><b><${Money} value=${listing.price} /></b></${Cell}>
    <${Cell} label=${t("word.floor")}>${floor === undefined ? "" : html`<${Money} value=${floor} />`}${floor > 0 && html` <small>${t("listings.of_floor", { share: percent(listing.price / floor) })}</small>`}</${Cell}>
    <${Cell} label=${t("word.lowest_signature")}><span class=${isLower ? "listings-held" : ""} title=${t("listings.lowest.what")}>${isLower && html`<i aria-hidden="true" />`}<${Money} value=${listing.lowestOutstanding} /></span></${Cell}></div>`;
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

const SHOWN = ["", "sale", "sold", "look"];
const plain = (text) => text.toLowerCase().replace(/[\s_-]/g, "");
const allTags = computed(() => [...new Set((listings.value || []).flatMap((task) => task.tags))].sort());

/** Tasks that fit the query {q, show, tag}: what needs a look first, then the newest. */
function found({ q = "", show = "", tag = "" }) {
  const words = plain(q);
  const fits = (task) =>
    (!words || plain([nameOf(task.inscriptionId), task.inscriptionId, task.collectionId, ...task.tags].join(" ")).includes(words)) &&
    (!show || (show === "look" ? Boolean(task.lastError) : standOf(task) === show)) &&
    (!tag || task.tags.includes(tag));
  return listings.value.filter(fits).sort((a, b) => Number(Boolean(b.lastError)) - Number(Boolean(a.lastError)) || b.id - a.id);
}

export default function Listings({ query }) {
  const load = useLoad(() => (listingIds.peek() ? Promise.resolve() : readListings()));
  useEffect(() => void (items.peek() || quietly(readItems())), []);
  const ids = listingIds.value;
  return html`<div class="page"><header class="page-head"><h1>${t("word.listings")}${ids && html`<span class="count">${ids.length}</span>`}</h1>
      <div class="acts"><a class="button primary" href="#/list"><${Icon} name="plus" />${t("word.list_an_item")}</a></div></header>
    ${ids ? html`<${All} query=${query} />` : load.refusal ? html`<${Refused} refusal=${load.refusal} again=${load.again} />` : html`<${Skeleton} rows=${4} tall=${96} />`}</div>`;
}

function All({ query }) {
  if (!listings.value.length) {
    return html`<section class="panel"><${Empty} title=${t("listings.none")} action=${html`<a class="button" href="#/list">${t("word.list_an_item")}</a>`}>${t("listings.none.what")}</${Empty}></section>`;
  }
  const shown = found(query);
  return html`<${Sums} />
    <div class="listings-choice" role="search"><label class="field"><span>${t("listings.find")}</span><input type="search" autocomplete="off" spellcheck=${false} value=${query.q || ""}
        onInput=${(event) => setQuery({ q: event.target.value })} /></label>
      <${Segments} label=${t("listings.show")} value=${query.show || ""} options=${SHOWN.map((each) => [each, t(`listings.show.${each}`)])} onChange=${(show) => setQuery({ show })} />
      ${allTags.value.length > 0 && html`<label class="field"><span>${t("word.tag")}</span><select value=${query.tag || ""} onChange=${(event) => setQuery({ tag: event.target.value })}>
        <option value="">${t("listings.tag.any")}</option>${allTags.value.map((tag) => html`<option key=${tag} value=${tag} selected=${tag === query.tag}>${tag}</option>`)}</select></label>`}</div>
    <section class="panel" aria-label=${t("word.listings")}>${shown.length
      ? html`<header class="panel-head listings-head"><p class="quiet">${t("listings.lowest.what")}</p><u>${unitName()}</u></header>
        <ul>${shown.map(({ id }) => html`<${ListingRow} key=${id} id=${id} />`)}</ul>`
      : html`<${Empty} action=${html`<button class="button" onClick=${() => setQuery({ q: "", show: "", tag: "" })}>${t("word.show_all")}</button>`}>${t("listings.nothing")}</${Empty}>`}</section>`;
}

/** What is asked for all that is on the market, what came of the sold ones, and how many can be had for less. */
function Sums() {
  const real = listings.value.filter((task) => !task.config.dryRun);
  const of = (stand) => real.filter((task) => standOf(task) === stand);
  const [sale, sold] = [of("sale"), of("sold")];
  const cheaper = real.filter(isCheaper);
  const sum = (list, read) => list.reduce((total, each) => total + (read(each.listing) || 0), 0);
  return html`<section class="numbers listings-numbers" aria-label=${t("listings.sums")}>
    <div class="number"><span class="label">${t("listings.sale")}</span><b><${Money} value=${sum(sale, (each) => each.price)} named /></b><small>${t("listings.sale.what", { count: sale.length })}</small></div>
    <div class="number"><span class="label">${t("listings.sold")}</span><b><${Money} value=${sum(sold, (each) => each.proceeds ?? each.price)} named /></b><small>${t("listings.sold.what", { count: sold.length })}</small></div>
    <div class="number"><span class="label">${t("listings.cheaper")}<${Term} of="lowest_live" /></span><b>${cheaper.length}</b><small>${t("listings.cheaper.what", { count: cheaper.length })}</small></div></section>`;
}
