// Name, unit, theme and plan.
import { useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call, endSession } from "../api.js";
import { Skeleton, toast, useAct } from "./states.js";
import { NONE, amount, clock, secondsOf, unit } from "../format.js";
import { me, readProfile } from "../store.js";
import { Copyable } from "./basics.js";
import { Segments, TextField, useFaults } from "./field.js";
import { theme } from "./shell.js";

export default function Look() {
  const user = me.value;
  const [name, setName] = useState(null);
  const { isBusy, run } = useAct();
  const [faults, send] = useFaults(["displayName"]);
  if (!user) return html`<${Skeleton} rows=${1} tall=${220} />`;
  const save = (event) => {
    event.preventDefault();
    return run(() => send(async () => {
      await call("PATCH", "/auth/me", { displayName: name.trim() || null });
      await readProfile();
      setName(null);
      toast(t("word.saved"));
    }));
  };
  const { planDetails: plan, subscription } = user;
  return html`<section class="panel"><div class="panel-body settings-look">
    <form class="settings-name" onSubmit=${save}><${TextField} label=${t("settings.name")} hint=${t("settings.name.hint")} maxlength="100" fault=${faults.displayName} value=${name ?? user.displayName ?? ""} onChange=${setName} />
      <button class="button" disabled=${isBusy || name === null}>${t("word.save")}</button></form>
    <div class="field"><span>${t("settings.unit")}</span><${Segments} label=${t("settings.unit")} value=${unit.value} options=${[["sats", "sats"], ["btc", "BTC"]]} onChange=${(value) => (unit.value = value)} /></div>
    <div class="field"><span>${t("settings.theme")}</span><${Segments} label=${t("settings.theme")} value=${theme.value} options=${["auto", "dark", "light"].map((each) => [each, t(`theme.${each}`)])} onChange=${(value) => (theme.value = value)} /></div>
    <dl class="facts"><dt>${t("settings.address")}</dt><dd><${Copyable} text=${user.address} name=${t("settings.address")} /></dd>
      <dt>${t("word.plan")}</dt><dd>${subscription ? t("settings.plan.until", { name: plan.name, until: clock(secondsOf(subscription.expiresAt)) }) : NONE}<br />
        <span class="quiet">${t("settings.plan.gives", { tasks: plan.maxTasks, bids: plan.maxBidsPerTask, exposure: amount(user.stats.maxExposure) })}</span></dd></dl>
    <div><button class="button" onClick=${() => endSession().catch(() => {})}>${t("word.sign_out")}</button></div></div></section>`;
}
