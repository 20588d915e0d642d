// One listing: its picture and price, what it could be bought for, its past, and why it stands where it does.
import { computed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html, t } from "../page.js";
import { get, withQuery } from "../api.js";
import { Empty, Refused, Skeleton, useAct, useLoad } from "../parts/states.js";
import { watch } from "../events.js";
import { amount, clock, iso, percent, secondsOf } from "../format.js";
import { Picture, itemOf, items, nameOf, readItem, readItems, readPicture } from "../parts/picture.js";
import { floorOf, groupsOf, isCheaper, paperPriceOf, standOf } from "../listing_state.js";
import { setQuery } from "../router.js";
import { cyclesOf, leaving, link, listingIds, listingOf, now, quietly, readListing, readListings, readVenues, restraintOf, venues, wallet } from "../store.js";
import { Copyable, Icon, Money } from "../parts/basics.js";
import { Term } from "../parts/term.js";
import { NextCycle, State } from "../parts/state.js";
import { Edit, deleteListing, startListing, stopListing } from "./listing/edit.js";
import { Past, RANGES, Tabs, priceWords } from "./listing/tabs.js";
import { faultOf, reasonOf } from "../texts/reasons.js";
import "../texts/listing.js";

export function Item({ task, known }) {
  const { inscriptionId, collectionId, listing } = task;
  // Traits are worth one look-up; what is shown without them is enough.
  const detail = useLoad((abort) => readItem(inscriptionId, abort), [inscriptionId]).value;
  const name = nameOf(inscriptionId);
  return html`<section class="panel listing-item" aria-label=${t("listing.item")}>
    <${Picture} of=${inscriptionId} letter=${name.slice(0, 1).toUpperCase()} words=${t("word.picture_of", { name })} read=${readPicture(inscriptionId)} />
    <dl class="facts"><dt>${t("listing.fact.collection")}</dt><dd><bdi>${known?.collectionName || detail?.collectionName || collectionId || t("listing.unknown")}</bdi></dd>
      <dt>${t("listing.fact.id")}</dt><dd><${Copyable} text=${inscriptionId} head=${6} tail=${5} name=${t("listing.fact.id")} /></dd>
      ${listing && html`<dt>${t("listing.fact.output")}</dt><dd><${Copyable} text=${listing.outpoint} head=${6} tail=${5} name=${t("listing.fact.output")} /></dd>`}
      ${listing?.listedAt && html`<dt>${t("listing.fact.listed")}</dt><dd><time datetime=${listing.listedAt} title=${iso(secondsOf(listing.listedAt))}>${clock(secondsOf(listing.listedAt), now.value)}</time></dd>`}
      ${(detail?.traits || []).slice(0, 12).map(({ type, value }) => html`<dt key=${type}><bdi>${type}</bdi></dt><dd><bdi>${value}</bdi></dd>`)}</dl></section>`;
}

const Number = ({ label, value, what, name = "" }) => html`<div class="number"><span class="label">${label}</span><b class=${name}>${value}</b>${what && html`<small>${what}</small>`}</div>`;

export function Numbers({ task, series }) {
  const stand = standOf(task);
  return stand === "sold" ? html`<${Sold} task=${task} />` : html`<${Asked} task=${task} stand=${stand} series=${series} />`;
}

function Asked({ task, stand, series }) {
  const { listing, config } = task;
  const floor = floorOf(cyclesOf(task.id).value);
  const least = series?.guard.at(-1) ?? (config.minPriceSats || null);
  const price = stand !== "none" ? listing.price : config.dryRun ? paperPriceOf(cyclesOf(task.id).value) : null;
  const isLower = isCheaper(task);
  return html`<section class="numbers listing-numbers" aria-label=${t("listing.numbers")}>
    <${Number} label=${t(stand === "off" ? "word.last_price" : "word.price")} value=${html`<${Money} value=${price} named=${price !== null} />`}
      what=${price === null ? t("listing.price.none") : stand === "off" ? t(`listing.closed.${listing.closeReason}`) : stand === "none" ? t("listing.price.paper") : ""} />
    <${Number} label=${t("listing.floor")} value=${html`<${Money} value=${floor} named=${floor > 0} />`}
      what=${floor > 0 && price !== null ? t("listing.floor.of", { share: percent(price / floor) }) : floor === null ? t("listing.floor.none") : ""} />
    <${Number} label=${t("listing.least")} value=${html`<${Money} value=${least} named=${least !== null} />`} what=${t(least === null ? "listing.least.none" : "listing.least.what")} />
    <${Number} label=${html`${t("word.lowest_signature")}<${Term} of="lowest_live" />`} name=${isLower ? "listing-held" : ""} value=${html`<${Money} value=${listing?.lowestOutstanding} named=${listing?.lowestOutstanding != null} />`}
      what=${listing?.lowestOutstanding == null ? t("listing.lowest.none") : html`${t("listing.lowest.what")}${listing.lowestNote && html`<span class="listing-note">${listing.lowestNote}</span>`}`} /></section>`;
}

function Sold({ task: { listing, config, venue, collectionId } }) {
  const gain = config.costSats !== null && listing.proceeds !== null ? listing.proceeds - config.costSats : null;
  const backsBids = wallet.value?.funding.some((each) => each.venue === venue && each.from === "payment");
  return html`<section class="numbers listing-numbers" aria-label=${t("listing.numbers")}>
      <${Number} label=${t("word.you_received")} name="listing-good" value=${html`★ <${Money} value=${listing.proceeds} named />`} what=${html`<a class="link" href=${`#/history?${new URLSearchParams({ side: "sell", ...(collectionId ? { slug: collectionId } : {}) })}`}>${t("listing.history")}</a>`} />
      <${Number} label=${t("word.sold_at")} value=${html`<${Money} value=${listing.price} named />`} what=${listing.proceeds > listing.price ? t("listing.sold.more", { sats: amount(listing.proceeds - listing.price) }) : ""} />
      ${gain !== null && html`<${Number} label=${t("listing.gain")} name=${gain < 0 ? "listing-bad" : "listing-good"} value=${html`<${Money} value=${gain} named />`} what=${t("listing.gain.what", { cost: amount(config.costSats) })} />`}</section>
    <div class="note good"><p>${t(backsBids ? "listing.proceeds.back" : "listing.proceeds")} ${!backsBids && html`<a href="#/wallet">${t("listing.proceeds.do")}</a>`}</p></div>`;
}

const MOST = 12;

export function Why({ id }) {
  const cycles = cyclesOf(id).value;
  const groups = cycles ? groupsOf(cycles).slice(0, MOST) : [];
  // A reason's sentence is said once.
  const said = new Set();
  const isNew = (code) => !said.has(code) && said.add(code);
  return html`<section class="panel" aria-labelledby="why-title"><header class="panel-head"><h2 id="why-title">${t("word.why")}</h2></header>
    ${!cycles ? html`<div class="panel-body"><${Skeleton} rows=${2} tall=${52} /></div>` : !groups.length ? html`<${Empty}>${t("listing.why.none")}</${Empty}>`
      : html`<ol class="listing-why">${groups.map((group) => html`<${Decision} key=${group.to} group=${group} isSaid=${!isNew(group.fault || group.code)} />`)}</ol>`}</section>`;
}

function wordsOf({ code, fault, error }) {
  if (code === "sold") return { title: t("word.sold"), why: t("listing.why.sold.what"), kind: "good" };
  return code ? reasonOf(code) : { ...faultOf({ lastErrorCode: fault || "other", lastError: error || t("listing.why.nothing") }), kind: fault ? "fault" : "keep" };
}

function Decision({ group, isSaid }) {
  const { code, fault, error, price, from, to, count, isDry } = group;
  const { title, why, kind } = wordsOf(group);
  const also = fault && code ? faultOf({ lastErrorCode: fault, lastError: error }) : null;
  const at = now.value;
  return html`<li><i class=${`dot ${kind}`} aria-hidden="true" /><div><p><b class=${kind}>${title}</b>${price !== null && html` <${Money} value=${price} named />`}${isDry && html` <span class="tag wait">${t("word.on_paper")}</span>`}</p>
      ${!isSaid && why && html`<p class="quiet">${why}</p>`}${also && also.title !== title && html`<p class="listing-bad">${also.title}. ${also.why}</p>`}</div>
    <time title=${iso(to)} datetime=${iso(to)}>${count > 1 ? t("listing.why.times", { count, from: clock(from, at), to: clock(to, at) }) : clock(to, at)}</time></li>`;
}

export function Head({ task, query }) {
  const { isBusy, run } = useAct();
  const isSold = standOf(task) === "sold";
  const isBarred = isBusy || link.value === "offline";
  const { state, scope } = restraintOf(task.id, "autolist");
  return html`<header class="page-head"><a class="button listing-back" href="#/listings" aria-label=${t("word.all_listings")}><${Icon} name="back" /></a>
      <div class="listing-name"><h1><bdi>${nameOf(task.inscriptionId)}</bdi></h1><div class="listing-sub">${isSold ? html`<span class="state on"><i aria-hidden="true" />${t("word.sold")}</span>`
        : html`<${State} task=${task} kind="autolist" /><${NextCycle} task=${task} />`}<span class="quiet"><bdi>${priceWords(task.config)}</bdi></span></div></div>
      <div class="acts">${!(isSold && !task.isRunning) && html`<button class=${`button ${task.isRunning ? "" : "primary"}`} data-key="s" disabled=${isBarred} aria-busy=${isBusy}
          onClick=${() => run(() => (task.isRunning ? stopListing(task) : startListing(task)))}><${Icon} name=${task.isRunning ? "stop" : "play"} />${t(task.isRunning ? "word.stop" : "word.start")}</button>
        <button class="button" data-key="e" aria-pressed=${Boolean(query.edit)} onClick=${() => setQuery({ edit: query.edit ? "" : "1" })}><${Icon} name="edit" />${t(query.edit ? "listing.edit.end" : "word.edit")}</button>`}
        <button class="button" disabled=${isBarred} onClick=${() => run(() => deleteListing(task))}><${Icon} name="trash" />${t("word.delete")}</button></div></header>
    ${task.lastError && html`<${Trouble} task=${task} />`}
    ${state !== "run" && html`<div class="note"><p>${t("listing.held", { state: t(`state.${state}`), by: t(`brake.by.${scope}`) })}</p></div>`}`;
}

function Trouble({ task }) {
  const { title, why } = faultOf(task);
  return html`<div class="note bad" role="alert"><b>${title}</b>${why && html`<span>${why}</span>`}${task.lastError !== title && html`<small class="quiet">${task.lastError}</small>`}</div>`;
}

const minute = computed(() => Math.floor(now.value / 60));
const written = (seconds) => new Date(Math.floor(seconds) * 1000).toISOString().replace(".000", "");

export default function Listing({ id, query }) {
  // One that was just made may not be in the list that is known: then that is asked for after it.
  const isMissing = () => listingIds.peek()?.includes(id) === false;
  const load = useLoad(() => readListing(id).then(() => isMissing() && readListings()), [id]);
  useEffect(() => {
    if (!items.peek()) quietly(readItems());
    if (!venues.peek()) quietly(readVenues());
  }, []);
  const task = listingOf(id).value;
  // Deleted elsewhere, that is; whoever deletes it here is led on.
  const isGone = !load.isLoading && !load.refusal && listingIds.value?.includes(id) === false && !leaving.value.has(id);
  if (isGone || load.refusal?.status === 404) return html`<div class="page"><h1>${t("listing.gone")}</h1><${Empty} action=${html`<a class="button" href="#/listings">${t("word.all_listings")}</a>`}>${t("refusal.404")}</${Empty}></div>`;
  if (!task) return html`<div class="page">${load.refusal ? html`<${Refused} refusal=${load.refusal} again=${load.again} />` : html`<${Skeleton} rows=${3} tall=${180} />`}</div>`;
  return html`<${Shown} task=${task} query=${query} />`;
}

function Shown({ task, query }) {
  const { id } = task;
  const range = query.range in RANGES ? query.range : "6h";
  useEffect(() => watch(id, { kind: "autolist" }), [id]);
  const past = useLoad((abort) => get(withQuery(`/autolist/${id}/series`, { from: written(now.peek() - RANGES[range]) }), { abort }), [id, range, minute.value, task.listing?.price], id);
  return html`<div class="page"><${Head} task=${task} query=${query} />
    ${query.edit ? html`<${Edit} key=${id} task=${task} />` : html`<div class="listing-top"><${Item} task=${task} known=${itemOf(task.inscriptionId)} />
        <div class="listing-side"><${Numbers} task=${task} series=${past.value} /><${Past} task=${task} from=${past} range=${range} asNumbers=${Boolean(query.numbers)} /></div></div>
      <div class="two"><${Why} id=${id} /><${Tabs} task=${task} query=${query} /></div>`}</div>`;
}
