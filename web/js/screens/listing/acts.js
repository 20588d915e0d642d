// Start, stop and delete of one listing, each with what stays good afterwards.
import { call } from "../../api.js";
import { amount } from "../../format.js";
import { nameOf } from "../../items.js";
import { standOf } from "../../listing_state.js";
import { askPlan } from "../../plan_listing.js";
import { goOn } from "../../router.js";
import { leave, quietly, readListing, readListings, stay } from "../../store.js";
import { t } from "../../texts.js";
import { confirmed } from "../../parts/dialog.js";
import { confirmListing } from "../../parts/listing_confirm.js";
import { wordsOf } from "../../parts/states.js";
import { toast } from "../../parts/toast.js";

async function told(act, options) {
  try {
    return await act();
  } catch (refusal) {
    toast(wordsOf(refusal, options), { isBad: true });
    return null;
  }
}

/** What can still be bought with what was signed. */
export const signatureWords = ({ listing }) => listing?.lowestOutstanding != null && t("listing.signature.stays", { price: amount(listing.lowestOutstanding) });

export async function startListing(task) {
  await told(async () => {
    const name = nameOf(task.inscriptionId);
    if (!(await confirmListing({ name, config: task.config, plan: await askPlan({ taskId: task.id }) }))) return;
    await call("POST", `/autolist/${task.id}/start`);
    toast(t("listing.started"));
  });
  await readListing(task.id).catch(() => {});
}

export async function stopListing(task) {
  const isListed = standOf(task) === "sale";
  const lines = [isListed ? t("listing.stop.stays", { price: amount(task.listing.price) }) : t("listing.stop.none"), isListed && t("listing.stop.then"), signatureWords(task)];
  if (!(await confirmed({ title: t("listing.stop.title", { name: nameOf(task.inscriptionId) }), lines, act: t("listing.stop") }))) return;
  const answer = await told(() => call("POST", `/autolist/${task.id}/stop`), { isStop: true });
  if (answer) toast(t(isListed ? "listing.stopped.stays" : "listing.stopped"));
  await readListing(task.id).catch(() => {});
}

export async function deleteListing(task) {
  const isListed = standOf(task) === "sale";
  const lines = [isListed && t("listing.delete.takes", { price: amount(task.listing.price) }), signatureWords(task), t("listing.delete.then")];
  if (!(await confirmed({ title: t("listing.delete.title", { name: nameOf(task.inscriptionId) }), lines, act: t("listing.delete") }))) return;
  leave([task.id]);
  const answer = await told(() => call("DELETE", `/autolist/${task.id}`));
  if (!answer) return stay([task.id]);
  goOn(`/listings/${task.id}`, "/listings");
  quietly(readListings());
  toast(answer.message || t(answer.listingCancelled ? "listing.deleted.cancelled" : "listing.deleted"));
}
