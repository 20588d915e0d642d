// Signing in: with a wallet that lives in this browser, or on a practice market with the market's own, by one click.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { beginSession, call, clockAheadMs, get, wasEnded } from "../api.js";
import { Copyable, Icon, Logo } from "../parts/basics.js";
import { Check, Segments } from "../parts/field.js";
import { useCountdown, wordsOf } from "../parts/states.js";
import { device } from "../kept.js";
import "../texts/signin.js";
import { Closed, NoAddress, WALLETS, watch } from "../wallets.js";

const ASK_AGAIN_MS = 3000;
const SETTLED_MS = 600;
const PURPOSE = "signInPurpose";

/** The practice market's wallet, in the form of the others: the server has its texts signed. */
const playWallet = (address) => ({
  id: "play",
  name: t("signin.play"),
  find: () => address,
  connect: async () => ({ address }),
  sign: async (it, account, message, challengeId) => (await call("POST", "/auth/play", { challengeId })).signature,
});

/** Fetches what the signed-in page needs while the wallet signs; a file that does not arrive is fetched again then. */
const fetchAhead = () => Promise.allSettled([import("../parts/shell.js"), import("../events.js"), import("./overview.js")]);

/** Says why somebody is not signed in, as {title, what, isCalm?, address?, retryAfterS?}. */
function troubleOf(failure, { name, address, expiresAt }) {
  const told = (key, values) => ({ title: t(`signin.${key}`, values), what: t(`signin.${key}.what`, values) });
  if (failure instanceof Closed) return { ...told("closed"), isCalm: true };
  if (failure instanceof NoAddress) return told("no_address");
  const { status } = failure;
  if (status === undefined) return { ...told("wallet", { name, words: String(failure.message || "").slice(0, 200) }) };
  if (status === 0) return told("unreachable");
  if (status === 400 && !expiresAt) return { ...told("address"), address };
  if (status === 401 && Date.now() + clockAheadMs.value >= 1000 * expiresAt) return { ...told("expired"), isCalm: true };
  const why = String(failure.body?.message || "");
  if (status === 401 && why.startsWith("The challenge")) return { ...told("expired"), isCalm: true };
  if (status === 401) return why.includes("not BIP-322") ? told("ecdsa") : told("mismatch", { name });
  if (status === 403) return { ...told("unlisted"), address };
  if (status === 429) return { title: t("signin.often"), isCalm: true, retryAfterS: failure.retryAfterS || 1 };
  return { title: t("signin.refused"), what: wordsOf(failure) };
}

/** Address of the play wallet, "" where there is none, null until that is known; and why it is not. */
function usePlayAddress() {
  const [found, setFound] = useState({ address: null, isAway: false });
  useEffect(() => {
    let timer = 0;
    const abort = new AbortController();
    const ask = async () => {
      try {
        const { address } = await get("/auth/play", { abort: abort.signal });
        setFound({ address: address || "", isAway: false });
      } catch (failure) {
        if (abort.signal.aborted) return;
        // Where it is too early, or too often, the next answer may be another one.
        setFound({ address: null, isAway: failure.status === 0 });
        timer = setTimeout(ask, Math.max(ASK_AGAIN_MS, 1000 * failure.retryAfterS));
      }
    };
    ask();
    return () => (abort.abort(), clearTimeout(timer));
  }, []);
  return found;
}

// Length of a bid's bar, its share of the floor, and why it is as it is.
const RUNGS = [
  { length: 330, share: "90%", why: "first" },
  { length: 276, share: "80%", why: "kept" },
  { length: 222, share: "70%", why: "moved" },
  { length: 168, share: "60%", why: "kept" },
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

/** What Bidkeeper is, in a line and a picture: a ladder below the floor, with a reason for each bid. */
const Pitch = () => html`<section class="pitch">
  <div class="brand"><${Logo} />Bidkeeper</div>
  <h1>${t("signin.pitch.head")} <em>${t("signin.pitch.tail")}</em></h1>
  <p>${t("signin.pitch.what")}</p>
  <${Ladder} />
</section>`;

export default function SignIn() {
  const [there, setThere] = useState([]);
  const [isSettled, setSettled] = useState(false);
  const [busy, setBusy] = useState(null);
  const [text, setText] = useState("");
  const [trouble, setTrouble] = useState(null);
  const [isKept, setKept] = useState(false);
  const [purpose, setPurpose] = useState(device.getItem(PURPOSE) === "payment" ? "payment" : "ordinals");
  const play = usePlayAddress();
  const left = useCountdown(trouble?.retryAfterS || 0, trouble);
  const attempt = useRef(0);
  useEffect(() => watch(setThere), []);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLED_MS);
    return () => (clearTimeout(timer), (attempt.current += 1));
  }, []);

  async function signIn(wallet) {
    const mine = (attempt.current += 1);
    const known = { name: wallet.name, address: "", expiresAt: 0 };
    const isLeft = () => attempt.current !== mine;
    setTrouble(null);
    setText("");
    setBusy(wallet);
    fetchAhead();
    try {
      const it = wallet.find();
      const account = await wallet.connect(it, purpose);
      if (isLeft()) return;
      known.address = account.address;
      const challenge = await call("POST", "/auth/challenge", { address: account.address });
      if (isLeft()) return;
      known.expiresAt = challenge.expiresAt;
      setText(challenge.message);
      const signature = await wallet.sign(it, account, challenge.message, challenge.challengeId);
      if (isLeft()) return;
      const proof = { challengeId: challenge.challengeId, address: account.address, signature: signature || "" };
      const session = await call("POST", "/auth/verify", proof);
      beginSession(session.token, isKept);
    } catch (failure) {
      if (!isLeft()) setTrouble(troubleOf(failure, known));
    }
    if (!isLeft()) setBusy(null);
  }

  function giveUp() {
    attempt.current += 1;
    setBusy(null);
    setTrouble(troubleOf(new Closed(), {}));
  }

  const choosePurpose = (value) => {
    device.setItem(PURPOSE, value);
    setPurpose(value);
  };
  const isShut = busy !== null || left > 0;
  const isKnown = play.address !== null || isSettled;
  return html`<main class="signin" tabindex="-1">
    <${Pitch} />
    <section class="panel signin-card" aria-labelledby="signin-title">
      <h2 id="signin-title">${t(play.address ? "signin.title" : "signin.title.wallets")}</h2>
      ${wasEnded.value && !trouble && html`<div class="note" role="alert"><b>${t("signin.ended")}</b><span>${t("signin.ended.what")}</span></div>`}
      ${play.isAway && !trouble && html`<div class="note bad" role="alert"><b>${t("signin.unreachable")}</b><span>${t("signin.unreachable.what")}</span></div>`}
      ${play.address && html`<button class="button primary play-wallet" disabled=${isShut} onClick=${() => signIn(playWallet(play.address))}>
          <${Icon} name="play" /><span><b>${t("signin.play")}</b><small>${busy?.id === "play" ? t("signin.waiting.server") : t("signin.play.what")}</small></span></button>
        <div class="signin-or">${t("signin.or")}</div>`}
      <p class="quiet">${t("signin.what")}</p>
      <ul class=${isKnown ? "wallets" : "wallets unsettled"}>${WALLETS.map((wallet) => html`<${Row} key=${wallet.id} wallet=${wallet}
        isHere=${there.includes(wallet.id)} isBusy=${busy?.id === wallet.id} isShut=${isShut} onClick=${() => signIn(wallet)} />`)}</ul>
      ${isSettled && !there.length && !play.address && html`<p class="quiet">${t("signin.none")}</p>`}
      ${trouble && html`<${Trouble} trouble=${trouble} left=${left} />`}
      ${busy && busy.id !== "play" && html`<${Notice} kind="good" role="status"><span>${t("signin.waiting", { name: busy.name })}</span>
        <button class="button" onClick=${giveUp}>${t("cancel")}</button></${Notice}>`}
      <${Check} label=${t("signin.keep")} hint=${t("signin.keep.what")} value=${isKept} onChange=${setKept} />
      <details><summary>${t("signin.text")}</summary>
        ${text && busy ? html`<pre tabindex="0">${text}</pre>` : html`<p class="quiet">${t("signin.text.shape")}</p>`}</details>
      <details><summary>${t("signin.which")}</summary>
        <${Segments} label=${t("signin.which")} value=${purpose} onChange=${choosePurpose}
          options=${[["ordinals", t("signin.which.ordinals")], ["payment", t("signin.which.payment")]]} />
        <p class="quiet">${t("signin.which.what")}</p></details>
      <p class="signin-seed">${t("signin.seed")}</p>
    </section>
  </main>`;
}

/** A note that is seen, wherever one has scrolled to. */
function Notice({ kind, role, children }) {
  const box = useRef(null);
  useEffect(() => box.current.scrollIntoView({ block: "nearest" }), []);
  return html`<div class=${`note ${kind}`} role=${role} ref=${box}>${children}</div>`;
}

const Trouble = ({ trouble, left }) => html`<${Notice} kind=${trouble.isCalm ? "" : "bad"} role="alert"><b>${trouble.title}</b>
  <span>${trouble.retryAfterS ? t("signin.often.what", { seconds: left }) : trouble.what}</span>
  ${trouble.address && html`<${Copyable} text=${trouble.address} />`}</${Notice}>`;

/** One wallet: a button where it is in this browser, else the way to its maker. */
const Row = ({ wallet, isHere, isBusy, isShut, onClick }) => html`<li>${isHere
  ? html`<button class="wallet" data-wallet=${wallet.id} disabled=${isShut} aria-busy=${isBusy} onClick=${onClick}>
      <i aria-hidden="true">${wallet.name[0]}</i><span>${wallet.name}</span><small>${t("signin.here")}</small></button>`
  : html`<a class="wallet" href=${wallet.site} target="_blank" rel="noopener noreferrer" title=${t("signin.get", { name: wallet.name })}>
      <i aria-hidden="true">${wallet.name[0]}</i><span>${wallet.name}</span><small>${t("signin.absent")}<${Icon} name="external" /></small></a>`}</li>`;
