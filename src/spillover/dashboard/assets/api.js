// Requests to /v1: with the token if there is one, and with problems in plain words.

import { askToken, forgetToken, token } from "./token.js";

/** The server refused: `detail` says what and why. */
export class Problem extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered with status ${status}.`);
    this.status = status;
    this.field = problem.field ?? null;
    this.recorded = problem.recorded ?? null; // what somebody else recorded, where that is another version
  }
}

/** The server does not answer. Nothing is known about whether the request arrived. */
export class Unreachable extends Error {}

export const path = (...parts) => `/v1/${parts.map((part) => encodeURIComponent(part)).join("/")}`;

export const get = async (url, query = {}) => (await request(withQuery(url, query))).json();

/** Record something. key: the same one for every attempt, so that it is recorded once. */
export async function send(url, body, { key, method = "POST" } = {}) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  return (await request(url, { method, headers, body: JSON.stringify(body) })).json();
}

export async function sendFile(url, query, file) {
  const headers = { "Content-Type": "application/octet-stream" };
  return (await request(withQuery(url, query), { method: "POST", headers, body: file })).json();
}

export async function request(url, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  let response;
  try {
    response = await fetch(url, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The server does not answer. What you typed is kept: try again in a moment.");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401 && (await askToken(Boolean(token())))) return request(url, options);
  if (response.status === 401) forgetToken();
  throw new Problem(response.status, problem);
}

export function withQuery(url, query) {
  const given = Object.entries(query)
    .flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
    .filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${url}?${new URLSearchParams(given)}` : url;
}

/** A key that nobody else uses. (randomUUID is missing where the page came without encryption from another machine.) */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** What went wrong, as a sentence for a person. */
export function inWords(error) {
  if (error instanceof Unreachable || error instanceof RangeError) return error.message;
  if (!(error instanceof Problem)) return `This page made a mistake: ${error.message}`;
  const lead = {
    401: "A token is needed: ",
    403: "Your token does not allow this: ",
    404: "There is no such thing: ",
    409: "Nothing was recorded, as it contradicts what is there already, perhaps from somebody else: ",
    413: "This is too large: ",
    503: "The server could not record this; nothing was changed: ",
  };
  return `${lead[error.status] ?? "Not accepted: "}${error.message}`;
}
