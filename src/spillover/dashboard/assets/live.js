// What happens on the server while the page is open: server-sent events, read with fetch so that a token can be sent.

import { get, path, request, Problem } from "./api.js";
import { byId, replace, show } from "./dom.js";

const WAITS = [500, 1000, 2000, 4000, 8000];
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
let lost = false;

/** Call `changed(seq)` whenever the stream has new entries, and once after each connection. Never ends. */
export async function follow(url, changed) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await request(url, { headers: { Accept: "text/event-stream" } });
      attempt = -1;
      connected();
      await readEvents(response.body.getReader(), changed);
    } catch (error) {
      if (error instanceof Problem && error.status < 500) return disconnected(error.message, false);
    }
    disconnected(
      "The server does not answer. What you typed is kept, and this page goes on by itself as soon as it is back.",
      true,
    );
    await pause(WAITS[Math.min(Math.max(attempt, 0), WAITS.length - 1)]);
  }
}

/** Say that decisions have to wait, as long as the server is not ready. */
export async function untilReady() {
  const bar = byId("starting");
  for (;;) {
    try {
      await get(path("ready"));
      return show(bar, false);
    } catch (error) {
      if (!(error instanceof Problem)) return show(bar, false); // that it does not answer is said elsewhere
      if (bar.hidden) replace(bar, `${error.message[0].toUpperCase()}${error.message.slice(1)}.`);
      show(bar, true);
    }
    await pause(WAITS[1]);
  }
}

async function readEvents(reader, changed) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
    text = events.pop();
    for (const event of events) {
      const data = event
        .split(/\r?\n/)
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5))
        .join("\n");
      if (data) changed(JSON.parse(data).seq);
    }
  }
}

function connected() {
  if (lost) say("The server is back.");
  lost = false;
  show(byId("offline"), false);
  byId("live").dataset.state = "live";
  replace(byId("live-words"), "Live");
}

function disconnected(words, trying) {
  lost = true;
  byId("live").dataset.state = "lost";
  replace(byId("live-words"), trying ? "Reconnecting" : "Not connected");
  const bar = byId("offline");
  if (bar.hidden) {
    replace(bar, words);
    show(bar, true);
  }
}

/** Say in a few words what was done; a screen reader reads it. */
export function say(...words) {
  const box = byId("said");
  replace(box, ...words);
  box.dataset.fresh = "yes";
  clearTimeout(say.timer);
  say.timer = setTimeout(() => {
    delete box.dataset.fresh;
  }, 6000);
}
