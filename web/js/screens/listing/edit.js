// A listing's settings in a form in place, with what a save would do beside it.
import { useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { call } from "../../api.js";
import { Loaded, attempt, confirmed, toast, useAct, useLoad, wordsOf } from "../../parts/states.js";
import { readShapes } from "../../config_shape.js";
import { amount } from "../../format.js";
import { nameOf, readItem } from "../../parts/picture.js";
import { faultsOf } from "../../parts/field.js";
import { changeOf, drawnFields, standOf, valuesOf } from "../../listing_state.js";
import { ListingPlan, askPlan, confirmListing, usePlan } from "../../parts/listing_plan.js";
import { goOn, setQuery } from "../../router.js";
import { leave, link, listingOf, quietly, readListing, readListings, stay } from "../../store.js";
import { ListingForm } from "../../parts/listing_form.js";

/** What can still be bought with what was signed. */
const signatureWords = ({ listing }) => listing?.lowestOutstanding != null && t("listing.signature.stays", { price: amount(listing.lowestOutstanding) });

export async function startListing(task) {
  await attempt(async () => {
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
  if (!(await confirmed({ title: t("word.stop_name", { name: nameOf(task.inscriptionId) }), lines, act: t("word.stop") }))) return;
  const answer = await attempt(() => call("POST", `/autolist/${task.id}/stop`), { isStop: true });
  if (answer) toast(t(isListed ? "listing.stopped.stays" : "listing.stopped"));
  await readListing(task.id).catch(() => {});
}

export async function deleteListing(task) {
  const isListed = standOf(task) === "sale";
  const lines = [isListed && t("listing.delete.takes", { price: amount(task.listing.price) }), signatureWords(task), t("listing.delete.then")];
  if (!(await confirmed({ title: t("listing.delete.title", { name: nameOf(task.inscriptionId) }), lines, act: t("word.delete") }))) return;
  leave([task.id]);
  const answer = await attempt(() => call("DELETE", `/autolist/${task.id}`));
  if (!answer) return stay([task.id]);
  goOn(`/listings/${task.id}`, "/listings");
  quietly(readListings());
  toast(answer.message || t(answer.listingCancelled ? "listing.deleted.cancelled" : "listing.deleted"));
}

export function Edit({ task }) {
  const shapes = useLoad(readShapes);
  return html`<${Loaded} from=${shapes} rows=${1} tall=${480}>${() => html`<${Editor} task=${task} />`}</${Loaded}>`;
}

function Editor({ task }) {
  // What is stored when the form is opened: another change meanwhile is not undone, for only changes are sent.
  const [base] = useState(() => valuesOf(task.config, task.tags));
  const [values, setValues] = useState(base);
  const [refused, setRefused] = useState(null);
  const { isBusy, run } = useAct();
  const change = changeOf(values, base);
  const { tags: _tags, ...priced } = change;
  const plan = usePlan({ taskId: task.id, ...priced });
  const details = (refused || plan.refusal)?.details || [];
  const faults = faultsOf(details, drawnFields(values));
  const traits = useLoad((abort) => (values.reference === "traitFloor" ? readItem(task.inscriptionId, abort).then((detail) => detail.traits || []) : Promise.resolve(null)), [values.reference === "traitFloor"]);
  const set = (some) => {
    setRefused(null);
    setValues((old) => ({ ...old, ...some }));
  };
  const save = () => run(async () => {
    setRefused(null);
    try {
      if (Object.keys(priced).length && !(await isMeant(task, values, await askPlan({ taskId: task.id, ...priced })))) return;
      const saved = await call("PUT", `/autolist/${task.id}`, change);
      const { warnings = [], ...stored } = saved;
      listingOf(task.id).value = stored;
      setQuery({ edit: "" });
      toast([t(task.isRunning ? "listing.saved.running" : "word.saved"), ...warnings].join(" "));
      quietly(readListings());
    } catch (refusal) {
      setRefused(refusal);
    }
  });
  const isSame = !Object.keys(change).length;
  return html`<div class="two sell-two"><form class="panel sell-form" novalidate aria-label=${t("word.edit")} onSubmit=${(event) => event.preventDefault()}>
      <${ListingForm} values=${values} set=${set} faults=${faults} traits=${traits.value} />
      ${(faults[""] || (refused && !details.length)) && html`<div class="note bad" role="alert"><p>${faults[""] || wordsOf(refused)}</p></div>`}
      <div class="sell-acts"><p class="sell-sum quiet">${t(isSame ? "listing.edit.same" : task.isRunning ? "listing.edit.running" : "listing.edit.stopped")}</p>
        <button type="button" class="button" onClick=${() => setQuery({ edit: "" })}>${t("cancel")}</button>
        <button type="button" class="button primary" disabled=${isSame || isBusy || link.value === "offline"} aria-busy=${isBusy} onClick=${save}>${t("word.save")}</button></div></form>
    <${ListingPlan} ...${plan} /></div>`;
}

/** Asks where a save signs another price at once. */
async function isMeant(task, values, plan) {
  if (!task.isRunning || values.dryRun || !["list", "reprice"].includes(plan.action)) return true;
  const floor = plan.market.lowestAsk;
  const [title, price] = [t("listing.save.title", { name: nameOf(task.inscriptionId), price: amount(plan.price) }), task.listing?.price];
  return confirmed({
    title,
    lines: [
      plan.action === "reprice" && price && t("listing.save.from", { price: amount(price) }),
      floor > 0 && plan.price < floor && t("confirm_listing.below", { floor: amount(floor) }),
      plan.action === "reprice" && plan.price > price ? signatureWords(task) : t("confirm_listing.signature"),
    ],
    act: t("word.save"),
    isDanger: false,
  });
}
