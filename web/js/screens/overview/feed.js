// What happened, newest first.
import { html } from "../../html.js";
import { amount, clock, iso, span } from "../../format.js";
import { linesOf } from "../../feed.js";
import { feed, listingOf, now, taskOf } from "../../store.js";
import { knows, t } from "../../texts.js";
import { faultOf, spoken } from "../../texts/reasons.js";

const MOST = 10;

export function Feed() {
  const lines = linesOf(feed.value, MOST);
  return html`<section class="panel" aria-labelledby="feed-title"><header class="panel-head"><h2 id="feed-title">${t("overview.feed")}</h2>
      <a class="link" href="#/history">${t("overview.feed.all")}</a></header>
    ${lines.length ? html`<ol class="feed">${lines.map((line) => html`<${Line} key=${line.id} line=${line} />`)}</ol>` : html`<div class="empty"><p>${t("overview.feed.none")}</p></div>`}</section>`;
}

function Line({ line }) {
  const [low, high] = (line.prices || [null, null]).map(amount);
  const name = `feed.${line.name}`;
  const words = knows(name) ? t(name, { ...line, low, high, was: amount(line.was), words: troubleOf(line) }) : line.text;
  return html`<li class=${`kind-${line.kind}`}><${Age} at=${line.at} /><i aria-hidden="true" /><span><b><bdi>${nameOf(line)}</bdi></b> ${words}</span></li>`;
}

function Age({ at }) {
  const past = now.value - at;
  return html`<time datetime=${iso(at)} title=${clock(at, now.value)}>${past < 3 ? t("overview.feed.now") : span(past)}</time>`;
}

function nameOf({ task, slug, data }) {
  if (slug) return slug;
  if (task === null) return data.venue || t("feed.everything");
  const known = taskOf(task).value || listingOf(task).value;
  return known?.slug || known?.collectionId || t("feed.gone.task");
}

/** The trouble in our words where it is still the task's, else in the server's. */
function troubleOf({ task, data }) {
  const known = taskOf(task).value || listingOf(task).value;
  return known?.lastError && known.lastError === data.error ? faultOf(known).title : data.error && spoken(data.error);
}
