// Wallets that live in the browser, each asked for BIP-322 in its own way: left to their defaults several sign by ECDSA,
// which the service does not take. docs/wallets.md says where each way is documented.

/** The person closed the wallet's window, or said no in it. */
export class Closed extends Error {}

/** The wallet gave no address that can sign in. */
export class NoAddress extends Error {}

// EIP-1193's code, and that of the wallets that follow sats-connect; some say it in words only.
const NO_CODES = [4001, -32000];
const NO_WORDS = /reject|denied|declin|cancel/i;

/** Runs something of a wallet's; its "no" becomes Closed, whether it was answered, thrown, or thrown as an answer. */
async function asked(run) {
  let answer;
  try {
    answer = await run();
  } catch (failure) {
    throw known(failure?.error || failure);
  }
  if (answer?.error) throw known(answer.error);
  return answer;
}

function known(failure) {
  const words = String(failure?.message ?? failure ?? "");
  if (NO_CODES.includes(failure?.code) || NO_WORDS.test(words)) return new Closed(words);
  return Object.assign(new Error(words), { code: failure?.code });
}

/** Asks a wallet that speaks JSON-RPC; returns its result. */
const request = async (wallet, method, params) => (await asked(() => wallet.request(method, params)))?.result;

const NO_SUCH_METHOD = -32601;
const PURPOSES = { p2tr: "ordinals", p2wpkh: "payment" };
const base64 = (bytes) => (typeof bytes === "string" ? bytes : btoa(String.fromCharCode(...bytes)));

/** Of several addresses the one for `purpose`, "ordinals" or "payment"; where the wallet has none of it, any. */
function choose(accounts, purpose) {
  const usable = (Array.isArray(accounts) ? accounts : []).filter((each) => each?.address && each.purpose !== "stacks");
  const found = usable.find((each) => each.purpose === purpose) || usable[0];
  if (!found) throw new NoAddress();
  return found;
}

// Other wallets answer to UniSat's name, too, and say so.
const isUnisat = (it) => it && !it.isOkxWallet && !it.isBinance && !it.isBitKeep && !it.isPhantom;

/** The object at a path below window, such as XverseProviders.BitcoinProvider: what WBIP-004 calls a provider's id. */
const at = (path) => path.split(".").reduce((found, name) => found?.[name], window);

/** Xverse by its entry in the wallets' common list, which may name another place than its usual one. */
function xverse() {
  const listed = Array.isArray(window.btc_providers) ? window.btc_providers : [];
  const entry = listed.find((each) => typeof each?.id === "string" && each.id.startsWith("XverseProviders."));
  return at(entry?.id || "XverseProviders.BitcoinProvider") || at("XverseProviders.BitcoinProvider");
}

async function xverseAccounts(it, purpose) {
  try {
    return (await request(it, "wallet_connect", { addresses: [purpose], message: "Sign in to Bidkeeper" }))?.addresses;
  } catch (failure) {
    if (failure.code !== NO_SUCH_METHOD) throw failure;
    return request(it, "getAccounts", { purposes: [purpose], message: "Sign in to Bidkeeper" }); // before 2025
  }
}

/**
 * Each wallet: `find` returns its object in this page, if it is there; `connect` asks it for an account, `sign` for a
 * BIP-322 signature (base64) of a text. `hasPurposes`: it has an address for items and another for coins.
 */
export const WALLETS = [
  {
    id: "unisat",
    name: "UniSat",
    site: "https://unisat.io",
    hasPurposes: false,
    find: () => [window.unisat_wallet, window.unisat].find(isUnisat),
    connect: async (it) => choose((await asked(() => it.requestAccounts()))?.map((address) => ({ address }))),
    sign: (it, account, message) => asked(() => it.signMessage(message, "bip322-simple")),
  },
  {
    id: "xverse",
    name: "Xverse",
    site: "https://www.xverse.app",
    hasPurposes: true,
    find: xverse,
    connect: async (it, purpose) => choose(await xverseAccounts(it, purpose), purpose),
    sign: async (it, { address }, message) =>
      (await request(it, "signMessage", { address, message, protocol: "BIP322" }))?.signature,
  },
  {
    id: "leather",
    name: "Leather",
    site: "https://leather.io",
    hasPurposes: true,
    find: () => [window.LeatherProvider, window.HiroWalletProvider].find((it) => it && !it.isCat21),
    async connect(it, purpose) {
      const found = (await request(it, "getAddresses"))?.addresses?.filter((each) => each.type in PURPOSES);
      return choose(found?.map((each) => ({ ...each, purpose: PURPOSES[each.type] })), purpose);
    },
    // It signs with the first address of a kind, whichever that is.
    sign: async (it, { type }, message) =>
      (await request(it, "signMessage", { message, paymentType: type, type: "bip322", network: "mainnet" }))?.signature,
  },
  {
    id: "okx",
    name: "OKX Wallet",
    site: "https://web3.okx.com",
    hasPurposes: false,
    find: () => window.okxwallet?.bitcoin,
    connect: async (it) => choose([await asked(() => it.connect())]),
    sign: (it, account, message) => asked(() => it.signMessage(message, "bip322-simple")),
  },
  {
    id: "phantom",
    name: "Phantom",
    site: "https://phantom.com",
    hasPurposes: true,
    find: () => window.phantom?.bitcoin?.isPhantom && window.phantom.bitcoin,
    connect: async (it, purpose) => choose(await asked(() => it.requestAccounts()), purpose),
    // It knows no other way than BIP-322, and takes and gives bytes.
    async sign(it, { address }, message) {
      const answer = await asked(() => it.signMessage(address, new TextEncoder().encode(message)));
      return base64(answer?.signature || []);
    },
  },
];

const LOOK_EVERY_MS = 100;
const LOOKS = 20; // counted, not timed: a page that was frozen meanwhile looks as often as any other

/** Calls `found` with the ids of the wallets that are there, again when more come: extensions inject late. */
export function watch(found) {
  let known = "";
  let left = LOOKS;
  const look = () => {
    const ids = WALLETS.filter((each) => each.find()).map((each) => each.id);
    if (ids.join() !== known) found(ids);
    known = ids.join();
    if (left === 0) clearInterval(timer);
    left -= 1;
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  look();
  return () => clearInterval(timer);
}
