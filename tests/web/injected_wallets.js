// Wallets as extensions inject them, each with its own interface. Every one signs with ECDSA, or not at all, unless it is
// asked for BIP-322 in the way that its maker documents: the service then refuses the signature, and the test fails.
(given) => {
  const { address, publicKey } = given;
  const account = { address, publicKey, purpose: "ordinals", addressType: "p2tr", type: "p2tr", symbol: "BTC" };
  const payment = { address: "bc1q-not-this-one", publicKey, purpose: "payment", addressType: "p2wpkh", type: "p2wpkh" };
  const refusal = (code) => Object.assign(new Error("User rejected the request."), { code });
  const ecdsa = btoa(String.fromCharCode(31, ...new Array(64).fill(7)));

  const signed = async (message, asked) => {
    if (given.refuses) throw refusal(4001);
    return asked ? window.personSigns(message) : ecdsa;
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
        if (method === "getAccounts") return [payment, account].filter((each) => params.purposes.includes(each.purpose));
        if (method === "getAddresses") return { addresses: [payment, account] };
        if (method === "wallet_connect") return { addresses: [payment, account] };
        if (method !== "signMessage") throw new Error(`no method ${method}`);
        if (params.address !== address) throw new Error("not an address of this wallet");
        return { address, signature: await signed(params.message, params.protocol === "BIP322"), messageHash: "" };
      });
      window.XverseProviders = { BitcoinProvider: { request } };
      window.BitcoinProvider = window.XverseProviders.BitcoinProvider;
    },
    leather() {
      const request = async (method, params) => {
        const answer = await answered(async () => {
          if (method === "getAddresses") return { addresses: [payment, account] };
          if (method !== "signMessage") throw new Error(`no method ${method}`);
          return { address, signature: await signed(params.message, params.paymentType === "p2tr") };
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
            if (who !== address) throw new Error("not an address of this wallet");
            const text = new TextDecoder().decode(message);
            return { signature: bytes(await signed(text, true)), signedMessage: message };
          },
        },
      };
    },
  };
  // Extensions inject when they are ready, which may be after the page.
  if (given.afterMs) setTimeout(inject[given.wallet], given.afterMs);
  else inject[given.wallet]();
}
