// Pieces of pages that the server has rendered.

import { localise } from "./times.js";

/** The document that the server answers; null where it has nothing to show. */
export async function load(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (!answer.ok || answer.redirected) return null;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  localise(parsed);
  return parsed;
}

/** One element of it. */
export async function loadElement(address, selector) {
  const parsed = await load(address);
  const found = parsed?.querySelector(selector);
  return found ? document.adoptNode(found) : null;
}
