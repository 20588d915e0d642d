// Events as a person reads them: each composed from its data, the same in a row as one, and what says nothing left out.

const TOGETHER_S = 10;
const MOVES_TOGETHER_S = 600;
const LOOK_BACK = 6;

/** [name of the text, kind] of an event, or null for one that nobody needs to read. */
function sortOf(told) {
  const { event, data } = told;
  if (event === "cycle") return data.error ? ["trouble", "fault"] : null;
  if (event === "order") return data.state === "live" ? ["placed", "do"] : [`gone.${data.closeReason}`, "keep"];
  if (event === "listing") return [data.state === "live" ? "relisted" : `unlisted.${data.closeReason}`, data.state === "live" ? "do" : "keep"];
  if (event === "task") return taskSort(data);
  if (event === "control" || event === "halted") return [`control.${data.state}`, data.state === "run" ? "do" : "stop"];
  return SORTS[event] || null;
}

const SORTS = {
  fill: ["fill", "fill"],
  sold: ["sold", "fill"],
  listed: ["listed", "do"],
  outbid_limited: ["outbid_limited", "limit"],
  error: ["error", "fault"],
  recovered: ["recovered", "do"],
  quota: ["quota", "limit"],
  plan_expiring: ["plan_expiring", "limit"],
  worker_dead: ["worker_dead", "fault"],
  wallet: ["wallet", "do"],
  daily: ["daily", "keep"],
};

function taskSort(data) {
  if (data.change) return [data.change, "do"];
  return ["running", "stopped", "crashed"].includes(data.observed) ? [data.observed, data.observed === "crashed" ? "fault" : "do"] : null;
}

/**
 * `feed` is newest first. Returns lines [{id, at, task, slug, name, kind, data, count, prices: [least, most], was, isPaper}], newest
 * first: bids of a task that went the same way within ten seconds are one line with their number, and a bid that took another's
 * place is one line with the price that it `was` at.
 */
export function linesOf(feed) {
  const lines = [];
  for (const told of feed) {
    const sort = sortOf(told);
    if (!sort) continue;
    const [name, kind] = sort;
    const at = Date.parse(told.at) / 1000;
    const price = told.data.price ?? null;
    const isPaper = Boolean(told.data.dryRun);
    const same = lines.slice(-LOOK_BACK).find((each) => each.name === name && each.task === told.task && each.isPaper === isPaper && isOne(each, told, at));
    if (same) {
      same.count += 1;
      same.from = at;
      if (price !== null) same.prices = [Math.min(same.prices[0], price), Math.max(same.prices[1], price)];
      continue;
    }
    const moved = lines.slice(-LOOK_BACK).find((each) => isMove(each, told, name, at));
    if (moved) {
      const isNew = name in MOVES;
      [moved.name, moved.kind] = [MOVES[isNew ? name : moved.name][1], "do"];
      [moved.was, moved.prices] = isNew ? [moved.prices[0], [price, price]] : [price, moved.prices];
      moved.from = at;
      joinMoves(lines, moved);
      continue;
    }
    lines.push({ id: told.id, at, from: at, task: told.task, slug: told.data.slug || null, name, kind, data: told.data, count: 1, prices: price === null ? null : [price, price], isPaper, text: told.text });
  }
  return lines;
}

/** What came and what went for it are one thing, whichever was first: [what went, what both are]. */
const MOVES = { placed: ["gone.cancelled", "moved"], listed: ["unlisted.replaced", "repriced"] };

function isMove(line, told, name, at) {
  return (MOVES[line.name]?.[0] === name || MOVES[name]?.[0] === line.name) && line.task === told.task && line.count === 1 && line.isPaper === Boolean(told.data.dryRun) && line.from - at <= TOGETHER_S;
}

/** Bids of one task that moved within ten minutes are one line with the number of `moves`. */
function joinMoves(lines, moved) {
  const newer = lines.find((each) => each !== moved && each.name === "moved" && moved.name === "moved" && each.task === moved.task && each.isPaper === moved.isPaper && each.from - moved.from <= MOVES_TOGETHER_S);
  if (!newer) return;
  newer.moves = (newer.moves || 1) + 1;
  newer.from = moved.from;
  newer.prices = [Math.min(newer.prices[0], moved.prices[0]), Math.max(newer.prices[1], moved.prices[1])];
  lines.splice(lines.indexOf(moved), 1);
}

/** The lines that a short feed shows: fills and sales first, then the newest others, `most` in all. */
export function ranked(lines, most) {
  const trades = lines.filter((line) => line.kind === "fill").slice(0, most / 2);
  return [...trades, ...lines.filter((line) => line.kind !== "fill").slice(0, most - trades.length)];
}

/** Faults are one line as long as they are the same; what was bought or sold stands by itself. */
function isOne(line, told, at) {
  if (line.name === "fill" || line.name === "sold") return false;
  if (line.name === "trouble") return line.data.error === told.data.error;
  return line.from - at <= TOGETHER_S;
}
