// Sends a conversation to Rapport; Node 20 or a browser's worker. node send.js URL TOKEN
interface Turn {
  type: "turn"; session_id: string; speaker_id: string; role: "client" | "counsellor";
  text: string; occurred_at: string; consent?: boolean; team?: string;
}
interface End { type: "session_end"; session_id: string; occurred_at: string }
interface Result { index: number; accepted: boolean; seq: number | null; code: string | null }

const [url, token] = process.argv.slice(2);
const pause = (seconds: number) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** The same key in every attempt: Rapport numbers and stores each turn once. */
async function send(events: (Turn | End)[], key: string = crypto.randomUUID()): Promise<Result[]> {
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(`${url}/api/v1/events`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token}`,
        "Content-Type": "application/json",
        "Idempotency-Key": `"${key}"`,
      },
      body: JSON.stringify(events),
      signal: AbortSignal.timeout(20_000),
    }).catch(() => undefined); // no answer: try again
    const body = await answer?.json().catch(() => undefined);
    const again = !answer || [409, 429, 502, 503, 504].includes(answer.status);
    const incomplete = body?.results?.some((result: Result) => result.code === "broker");
    if (body?.results && !again && !incomplete) return body.results; // 422: none is accepted
    if ((!again && !incomplete) || attempt === 8) throw new Error(body?.detail ?? "no answer");
    await pause(Number(answer?.headers.get("Retry-After")) || Math.random() * 2 ** attempt);
  }
}

const session_id = `chat-${crypto.randomUUID()}`, occurred_at = new Date().toISOString();
const turn = (role: Turn["role"], text: string): Turn =>
  ({ type: "turn", session_id, speaker_id: `${role}-1`, role, text, occurred_at, consent: true });
console.log(await send([turn("client", "I failed."), turn("counsellor", "That sounds hard.")]));
console.log(await send([{ type: "session_end", session_id, occurred_at }]));
