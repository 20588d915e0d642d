// A change that a session alone must not make: the wallet that one signs in with is asked to sign its text.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { call, get } from "../api.js";
import { useAct } from "../load.js";
import { me } from "../store.js";
import { t } from "../texts.js";
import { WALLETS } from "../wallets.js";
import { Dialog } from "./dialog.js";
import { wordsOf } from "./states.js";

const asked = signal(null);

/** Asks for consent to `change`; resolves to {approvalId, approvalSignature}, or null. Throws a Refusal. */
export async function approve(change) {
  const challenge = await call("POST", "/auth/approval", change);
  const { address } = await get("/auth/play");
  const hasPlayWallet = address !== null && address === me.value.address;
  const signature = await new Promise((resolve) => {
    asked.value = { challenge, hasPlayWallet, resolve };
  });
  asked.value = null;
  return signature && { approvalId: challenge.challengeId, approvalSignature: signature };
}

/** Has a wallet sign with the address of the sign-in, be it the one for items or the one for coins. */
async function signedBy(wallet, message) {
  const it = wallet.find();
  for (const purpose of wallet.hasPurposes ? ["ordinals", "payment"] : ["ordinals"]) {
    const account = await wallet.connect(it, purpose);
    if (account.address === me.value.address) return wallet.sign(it, account, message);
  }
  return null;
}

export function Approvals() {
  const [words, setWords] = useState("");
  const { isBusy, run } = useAct();
  const question = asked.value;
  useEffect(() => setWords(""), [question]);
  if (!question) return null;
  const { challenge, hasPlayWallet, resolve } = question;
  const sign = (how) => run(async () => {
    try {
      const signature = await how();
      if (signature) resolve(signature);
      else setWords(t("approve.other"));
    } catch (failure) {
      setWords(failure.status === undefined ? t("approve.closed") : wordsOf(failure));
    }
  });
  const play = async () => (await call("POST", "/auth/play", { challengeId: challenge.challengeId })).signature;
  const there = WALLETS.filter((wallet) => wallet.find());
  return html`<${Dialog} title=${t("ceilings.approve")} onClose=${() => resolve(null)}><p>${t("ceilings.approve.text")}</p><pre class="to-sign" tabindex="0">${challenge.message}</pre>
    ${words && html`<div class="note bad" role="alert"><p>${words}</p></div>`}
    ${!there.length && !hasPlayWallet && html`<p>${t("ceilings.approve.none")}</p>`}
    <div class="dialog-acts"><button class="button" autofocus onClick=${() => resolve(null)}>${t("cancel")}</button>
      ${hasPlayWallet && html`<button class="button primary" disabled=${isBusy} onClick=${() => sign(play)}>${t("approve.play")}</button>`}
      ${there.map((wallet) => html`<button key=${wallet.id} class="button primary" disabled=${isBusy} onClick=${() => sign(() => signedBy(wallet, challenge.message))}>${wallet.name}</button>`)}</div></${Dialog}>`;
}
