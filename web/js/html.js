// Templates of elements: values in them are text or elements, never markup.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
