// One listing: its picture and price, what it could be bought for, its past, and why it stands where it does.
import { computed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html } from "../html.js";
import { get, withQuery } from "../api.js";
import { watch } from "../events.js";
import { itemOf, items, readItems } from "../items.js";
import { useLoad } from "../load.js";
import {
  leaving, listingIds, listingOf, now, quietly, readListing, readListings, readVenues, venues,
} from "../store.js";
import { t } from "../texts.js";
import "../texts/listing.js";
import { Empty, Refused, Skeleton } from "../parts/states.js";
import { Edit } from "./listing/edit.js";
import { Head } from "./listing/head.js";
import { Item } from "./listing/item.js";
import { Numbers } from "./listing/numbers.js";
import { Past, RANGES } from "./listing/past.js";
import { Tabs } from "./listing/tabs.js";
import { Why } from "./listing/why.js";

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
  if (isGone || load.refusal?.status === 404) return html`<div class="page"><h1>${t("listing.gone")}</h1><${Empty} action=${html`<a class="button" href="#/listings">${t("listing.back")}</a>`}>${t("refusal.404")}</${Empty}></div>`;
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
