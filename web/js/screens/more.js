// The places that the foot of a phone has no room for.
import { html, t } from "../page.js";
import { endSession } from "../api.js";
import { Icon } from "../parts/basics.js";
import { placesOf, theme, version } from "../parts/shell.js";
import { Segments } from "../parts/field.js";
import { me } from "../store.js";

export default function More() {
  return html`<div class="page"><h1>${t("nav.more")}</h1>
    <ul class="panel more">${placesOf(me.value).slice(4).map(([path, name]) => html`<li key=${name}><a href=${`#${path}`}><${Icon} name=${name} />${t(`nav.${name}`)}</a></li>`)}
      <li><a href="/docs"><${Icon} name="external" />/docs</a></li></ul>
    <${Segments} label="Theme" value=${theme.value} options=${["auto", "dark", "light"].map((each) => [each, t(`theme.${each}`)])} onChange=${(value) => (theme.value = value)} />
    <button class="button" onClick=${() => endSession().catch(() => {})}>${t("word.sign_out")}</button>
    <p class="version phone-only">${version.value}</p></div>`;
}
