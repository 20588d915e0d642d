// What Bidkeeper is, in a line and a picture: a ladder below the floor, with a reason for each bid.
import { html, t } from "../page.js";
import { Logo } from "./basics.js";

// Length of a bid's bar, its share of the floor, and why it is as it is.
const RUNGS = [
  { length: 330, share: "90 %", why: "first" },
  { length: 276, share: "80 %", why: "kept" },
  { length: 222, share: "70 %", why: "moved" },
  { length: 168, share: "60 %", why: "kept" },
];
const RIVALS = [296, 254, 204, 148];

const Ladder = () => html`<svg class="pitch-ladder" viewBox="0 0 520 214" aria-hidden="true">
  <text x="0" y="14" class="pitch-words">${t("pitch.floor")}</text>
  <line x1="0" x2="520" y1="26" y2="26" class="pitch-floor" />
  ${RUNGS.map(({ length, share, why }, i) => {
    const y = 48 + 42 * i;
    return html`<g key=${share}><rect x="0" y=${y + 17} width=${RIVALS[i]} height="9" rx="4.500" class="pitch-rival" />
      <rect x="0" y=${y} width=${length} height="18" rx="9" class="pitch-own" opacity=${1 - 0.16 * i} />
      <text x=${length + 14} y=${y + 13} class="pitch-words"><tspan class="pitch-share">${share}</tspan>  ${t(`pitch.${why}`)}</text></g>`;
  })}</svg>`;

export const Pitch = () => html`<section class="pitch">
  <div class="brand"><${Logo} />Bidkeeper</div>
  <h1>${t("signin.pitch.head")} <em>${t("signin.pitch.tail")}</em></h1>
  <p>${t("signin.pitch.what")}</p>
  <${Ladder} />
</section>`;
