// Wallets as extensions inject them, each with its own interface. Every one signs with ECDSA, or not at all, unless it is
// asked for BIP-322 in the way that its maker documents: the service then refuses the signature, and the test fails.
(given) => {
  window.walletsMood = given; // a test may change `refuses` and `isOld` on the way
  const { address, paymentAddress, publicKey } = given;
  const account = { address, publicKey, purpose: "ordinals", addressType: "p2tr", type: "p2tr", symbol: "BTC" };
  const payment = { address: paymentAddress, publicKey, purpose: "payment", addressType: "p2wpkh", type: "p2wpkh", symbol: "BTC" };
  const stacks = { symbol: "STX", address: "SP000000000000000000002Q6VF78", publicKey, purpose: "stacks", addressType: "stacks" };
  const mine = [address, paymentAddress];
  const refusal = (code) => Object.assign(new Error("User rejected the request."), { code });
  const ecdsa = btoa(String.fromCharCode(31, ...new Array(64).fill(7)));

  const signed = async (message, isAsked, who = address) => {
    if (given.refuses) throw refusal(4001);
    await new Promise((resolve) => setTimeout(resolve, given.holdsMs));
    return isAsked && !given.isOld ? window.personSigns(message, who) : ecdsa;
  };
  const answered = async (make) => {
    try {
      return { jsonrpc: "2.0", id: "1", result: await make() };
    } catch (error) {
      return { jsonrpc: "2.0", id: "1", error: { code: -32000, message: error.message } };
    }
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  const inject = {
    unisat() {
      window.unisat = {
        requestAccounts: async () => [address],
        getAccounts: async () => [address],
        getPublicKey: async () => publicKey,
        signMessage: (message, type) => signed(message, type === "bip322-simple"),
      };
    },
    okx() {
      window.okxwallet = {
        bitcoin: {
          connect: async () => ({ address, publicKey, compressedPublicKey: publicKey }),
          requestAccounts: async () => [address],
          getPublicKey: async () => publicKey,
          signMessage: (message, type) => signed(message, type === "bip322-simple"),
        },
      };
      // OKX answers to UniSat's name, too, and says so.
      window.unisat = { isOkxWallet: true, ...window.okxwallet.bitcoin };
    },
    xverse() {
      const request = (method, params) => answered(async () => {
        const of = (purposes) => [stacks, payment, account].filter((each) => purposes.includes(each.purpose));
        if (method === "getAccounts") return of(params.purposes);
        if (method === "getAddresses") return { addresses: of(params.purposes) };
        if (method === "wallet_connect") return { addresses: of(params?.addresses || ["ordinals", "payment", "stacks"]) };
        if (method !== "signMessage") throw new Error(`no method ${method}`);
        if (!mine.includes(params.address)) throw new Error("not an address of this wallet");
        const signature = await signed(params.message, params.protocol === "BIP322", params.address);
        return { address: params.address, signature, messageHash: "" };
      });
      window.XverseProviders = { BitcoinProvider: { request } };
      window.BitcoinProvider = window.XverseProviders.BitcoinProvider;
      window.btc_providers = [
        { id: "OtherProvider", name: "Another wallet", icon: "", methods: ["getAddresses"] },
        { id: "XverseProviders.BitcoinProvider", name: "Xverse Wallet", icon: "", methods: ["wallet_connect", "signMessage"] },
      ];
    },
    leather() {
      const request = async (method, params) => {
        const answer = await answered(async () => {
          if (method === "getAddresses") return { addresses: [stacks, payment, account] };
          if (method !== "signMessage") throw new Error(`no method ${method}`);
          const who = params.paymentType === "p2tr" ? address : paymentAddress; // p2wpkh is what it takes by itself
          return { address: who, signature: await signed(params.message, params.type === "bip322", who) };
        });
        if (answer.error) throw answer; // its promise is refused with the whole answer
        return answer;
      };
      window.LeatherProvider = { request };
    },
    phantom() {
      window.phantom = {
        bitcoin: {
          isPhantom: true,
          requestAccounts: async () => [payment, account],
          signMessage: async (who, message) => {
            if (!(message instanceof Uint8Array)) throw new Error("the message must be bytes");
            if (!mine.includes(who)) throw new Error("not an address of this wallet");
            const text = new TextDecoder().decode(message);
            return { signature: bytes(await signed(text, true, who)), signedMessage: message };
          },
        },
      };
    },
  };
  // Extensions inject when they are ready, which may be after the page; then it is noted what the page showed without it.
  const injectSoon = () => setTimeout(() => {
    window.shownBefore = given.onceSeen ? [...document.querySelectorAll(given.onceSeen)].map((each) => each.textContent) : [];
    inject[given.wallet]();
  }, given.afterMs);
  if (given.onceSeen) {
    const observer = new MutationObserver(() => {
      if (!document.querySelector(given.onceSeen)) return;
      observer.disconnect();
      injectSoon();
    });
    observer.observe(document, { childList: true, subtree: true });
  } else if (given.afterMs) injectSoon();
  else inject[given.wallet]();
}
