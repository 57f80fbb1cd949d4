// Loads fragments of pages rendered by the server.

import { localise } from "./times.js";

/** Load a document; null if the response is an error or a redirect. */
export async function load(address, options = {}) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store", ...options });
  if (!answer.ok || answer.redirected) return null;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  localise(parsed);
  return parsed;
}

/** Load one element of a document; null if it does not exist. */
export async function loadElement(address, selector, options = {}) {
  const parsed = await load(address, options);
  const found = parsed?.querySelector(selector);
  return found ? document.adoptNode(found) : null;
}
