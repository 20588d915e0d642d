// What every part of the page is made of: elements, and the texts that a person reads, each by its name.
import htm from "htm";
import { h } from "preact";
import { english } from "./texts/words.js";

export const html = htm.bind(h);

/** Adds texts: each file of texts/ does so for its part of the page. */
export function define(texts) {
  Object.assign(english, texts);
}

/** Tells whether there is a text of this name: a newer server may tell of things that this page has no words for. */
export const knows = (name) => name in english;

/** Returns the text of a name. Throws for a name that nobody defined. */
export function t(name, values = {}) {
  const text = english[name];
  if (text === undefined) throw new Error(`no text ${name}`);
  return typeof text === "function" ? text(values) : text;
}

/**
 * Writes the names of a body's fields in a server's sentence as the page's forms do: every one before a colon or of several
 * words that is known as "field.of.NAME".
 */
export const withLabels = (text) =>
  text.replace(/^([A-Za-z]+)(?=: )|\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (name, first) => {
    const label = english[`field.of.${name}`];
    return label === undefined ? name : first ? label : `“${label}”`;
  });

const rules = new Intl.PluralRules("en");

/** Chooses by number: plural(2, {one: "bid", other: "bids"}). */
export const plural = (number, forms) => forms[rules.select(number)] || forms.other;
