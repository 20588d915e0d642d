import { define } from "../page.js";

define({
  "notify.title": "In this browser",
  "notify.what": "Shows fills, sales and trouble as notifications while a tab with Bidkeeper is open.",
  "notify.on": "Turn on",
  "notify.off": "Turn off",
  "notify.denied": "Your browser blocks notifications from this page. Allow them in the browser's settings for this site.",
  "notify.none": "This browser shows notifications only for pages that are opened over HTTPS or on the same machine.",
  "notify.fill": "Bid filled",
  "notify.sold": "Listing sold",
  "notify.error": "A task has trouble",
  "notify.worker_dead": "A task was given up",
});
