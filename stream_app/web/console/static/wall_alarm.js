// A sound and a browser notification for critical alerts; off until chosen in this browser.

const box = document.getElementById("alarm");
const note = document.getElementById("alarm-note");
const KEYS = { sound: "rapport-alarm-sound", notify: "rapport-alarm-notify" };
const TONE_HZ = 660;
const TONE_SECONDS = 0.25;
const TONES = 3;
let audio = null;

function field(kind) {
  return document.getElementById(`alarm-${kind}`);
}

function isOn(kind) {
  return box !== null && field(kind).checked;
}

/** Show the choices with what was chosen before. */
export function offerAlarm() {
  if (!box) return;
  box.hidden = false;
  field("sound").checked = localStorage.getItem(KEYS.sound) !== null;
  field("notify").checked = localStorage.getItem(KEYS.notify) !== null && permission() === "granted";
  field("sound").addEventListener("change", () => {
    remember("sound");
    if (isOn("sound")) sound(1);
  });
  field("notify").addEventListener("change", async () => {
    if (isOn("notify") && (await askPermission()) !== "granted") {
      field("notify").checked = false;
      note.textContent = "Your browser does not allow notifications from this page.";
    }
    remember("notify");
  });
}

function permission() {
  return "Notification" in window ? Notification.permission : "denied";
}

async function askPermission() {
  return permission() === "default" ? Notification.requestPermission() : permission();
}

function remember(kind) {
  if (isOn(kind)) localStorage.setItem(KEYS[kind], "1");
  else localStorage.removeItem(KEYS[kind]);
}

/** Ring for one alert; no text of the conversation is shown. */
export function alarm(alert) {
  if (isOn("sound")) sound(TONES);
  if (!isOn("notify") || permission() !== "granted") return;
  const shown = new Notification("Critical alert", {
    body: `${alert.rule} in session ${alert.session_id}`,
    tag: alert.episode_id,
  });
  shown.onclick = () => {
    window.focus();
    location.assign(`/sessions/${encodeURIComponent(alert.session_id)}`);
  };
}

function sound(tones) {
  audio ??= new AudioContext();
  audio.resume();
  box.dataset.sounded = String(Number(box.dataset.sounded ?? 0) + 1);
  for (let tone = 0; tone < tones; tone += 1) {
    const begins = audio.currentTime + 2 * tone * TONE_SECONDS;
    const oscillator = new OscillatorNode(audio, { frequency: TONE_HZ });
    const gain = new GainNode(audio, { gain: 0.2 });
    oscillator.connect(gain).connect(audio.destination);
    oscillator.start(begins);
    oscillator.stop(begins + TONE_SECONDS);
  }
}
