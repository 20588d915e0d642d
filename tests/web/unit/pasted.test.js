import assert from "node:assert/strict";
import { test } from "node:test";
import { inscriptionIn } from "../../../web/js/pasted.js";

const ID = `${"6fb976ab49dcec01".repeat(4)}i0`;

test("every spelling of an inscription's id is found, and nothing else", () => {
  const spellings = [ID, ` ${ID.toUpperCase()}\n`, `\ufeff${ID.slice(0, 9)}\u200b${ID.slice(9)}`, `https://ordinals.com/inscription/${ID}?a=b`];
  for (const text of spellings) assert.equal(inscriptionIn(text), ID);

  for (const text of ["", "cats", "12345", ID.slice(0, 64), `0${ID}`, `${ID}0${ID}`, `${ID} ${ID.replace(/0$/, "1")}`])
    assert.equal(inscriptionIn(text), "");
});
