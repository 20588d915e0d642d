// Notifications of this browser: fills, sales and trouble, once they were asked for in the settings.
import { signal } from "@preact/signals";
import { device } from "./kept.js";
import { onEvent } from "./events.js";
import { knows, t } from "./page.js";
import { go } from "./router.js";
import "./texts/notify.js";

const KEPT = "notify";

/** "none" where the browser has no notifications for this page, else what its user decided: "default", "granted" or "denied". */
const asked = () => (window.Notification && window.isSecureContext ? Notification.permission : "none");

export const permission = signal(asked());

/** Whether events are shown on this device. */
export const isWanted = signal(device.getItem(KEPT) === "yes" && permission.value === "granted");

/** Turns them on or off; asks the browser's user for permission the first time. */
export async function want(is) {
  if (is && asked() === "default") await Notification.requestPermission();
  permission.value = asked();
  isWanted.value = is && permission.value === "granted";
  if (isWanted.value) device.setItem(KEPT, "yes");
  else device.removeItem(KEPT);
}

/** Shows an event. All tabs do, and the browser replaces what has the same tag, so that a person sees it once. */
function show({ id, event, text, task, data }) {
  if (!isWanted.value || data.dryRun || !knows(`notify.${event}`)) return;
  const note = new Notification(t(`notify.${event}`), { body: text, tag: `bidkeeper-${id}`, icon: "/web/icon-512.png" });
  note.onclick = () => {
    window.focus();
    go(event === "fill" || event === "sold" ? "/history" : task === null ? "/" : `/tasks/${task}`);
  };
}

onEvent(show);
