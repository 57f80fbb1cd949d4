// Shows times in the reader's time zone and keeps elapsed times up to date.

const serverAhead = Date.parse(document.body.dataset.now) - Date.now();
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayOfYear = new Intl.DateTimeFormat("en-GB", { year: "numeric", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const recentDay = new Intl.DateTimeFormat("en-GB", { weekday: "long" });
const earlierDay = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "short" });
const SIX_DAYS = 6 * 24 * 3600 * 1000;
const zone = new Intl.DateTimeFormat("en-GB", { timeZoneName: "shortOffset" });
const TICK = 1000;

/** Milliseconds since the epoch by the server's clock. */
export function now() {
  return Date.now() + serverAhead;
}

/** Format a duration as `formatting.duration` does. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(seconds / 3600);
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min`;
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/** hh:mm:ss of a time in milliseconds. */
export function clockOf(milliseconds) {
  return clock.format(new Date(milliseconds));
}

/** A `time` element with the time elapsed since `moment`, which is kept up to date. */
export function sinceElement(moment) {
  const element = document.createElement("time");
  element.dateTime = moment;
  element.dataset.since = "";
  element.textContent = duration(now() - Date.parse(moment));
  return element;
}

/** Convert the times below an element to the reader's time zone. */
export function localise(root = document) {
  for (const element of root.querySelectorAll("time[data-clock]")) write(element, clock.format(new Date(element.dateTime)));
  for (const element of root.querySelectorAll("time[data-day]")) write(element, dateOf(new Date(element.dateTime)));
  for (const element of root.querySelectorAll("time[data-weekday]")) write(element, weekdayOf(Date.parse(element.dateTime)));
}

/** Date and time, with the year if it is not this one. */
function dateOf(moment) {
  return (moment.getFullYear() === new Date(now()).getFullYear() ? day : dayOfYear).format(moment);
}

/** The day of a past time, without its date if it was in the last six days. */
function weekdayOf(milliseconds) {
  return (now() - milliseconds < SIX_DAYS ? recentDay : earlierDay).format(new Date(milliseconds));
}

function tick() {
  if (document.hidden) return;
  const at = now();
  for (const element of document.querySelectorAll("time[data-since]")) write(element, duration(at - Date.parse(element.dateTime)));
}

/** Say once, in the footer, in which zone the page's times are. */
function nameZone() {
  const element = document.getElementById("zone");
  if (!element) return;
  const { timeZone } = zone.resolvedOptions();
  const offset = zone.formatToParts().find((part) => part.type === "timeZoneName").value;
  element.textContent = timeZone === "UTC" ? "Times are in UTC." : `Times are in ${timeZone} (${offset}); point at one to see it in UTC.`;
}

/** Send the end of a chosen day as a moment: which one it is depends on the reader's zone. */
function watchDayEnds() {
  for (const hidden of document.querySelectorAll("input[data-end-of]")) {
    const chosen = hidden.form.elements.namedItem(hidden.dataset.endOf);
    const set = () => (hidden.value = chosen.value && new Date(`${chosen.value}T23:59:59`).toISOString());
    chosen.addEventListener("input", set);
    set();
  }
  for (const words of document.querySelectorAll("[data-zone]")) words.textContent = zone.resolvedOptions().timeZone;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

localise();
nameZone();
watchDayEnds();
setInterval(tick, TICK);
