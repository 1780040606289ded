// Requests to the server. Every command runs as the user who is logged in.

/** A refusal of the console or of the server. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let whenLoggedOut = () => {};

/** Says whom to tell when the session is over. */
export function onLoggedOut(callback) {
  whenLoggedOut = callback;
}

async function ask(name, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(`api/${name}`, body === undefined ? {} : post);
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const json = await answer.json().catch(() => ({}));
  if (answer.ok) return json;
  if (answer.status === 401 && name !== "login" && name !== "session") whenLoggedOut();
  throw new Refused(answer.status, json.error ?? `The server answered ${answer.status}.`);
}

export const session = () => ask("session");
export const login = (name, password) => ask("login", { name, password });
export const logout = () => ask("logout", {});
export const history = () => ask("history");
export const settings = () => ask("settings");
export const spaces = () => ask("spaces");

/** Runs commands one after the other: `{replies, ms, cut}`. */
export const run = (commands, db = 0) => ask("command", { db, commands });

/** Runs one command and returns its reply; an error of the server is thrown. */
export async function one(command, db = 0) {
  const { replies, cut } = await run([command], db);
  if (!replies.length) throw new Refused(0, cut);
  return checked(replies[0]);
}

/** Runs commands and returns their replies; errors stay among them. */
export async function all(commands, db = 0) {
  const { replies, cut } = await run(commands, db);
  if (cut) throw new Refused(0, cut);
  return replies;
}

/** A reply, unless it is an error. */
export function checked(reply) {
  if (isError(reply)) throw new Refused(200, reply.error);
  return reply;
}

export const isError = (reply) => reply !== null && typeof reply === "object" && "error" in reply;

/** The text of a string, status, number or null. */
export function text(reply) {
  if (reply === null || reply === undefined) return "";
  if (typeof reply !== "object") return String(reply);
  for (const kind of ["status", "integer", "double", "big", "error"]) if (kind in reply) return reply[kind];
  if ("bytes" in reply) return escaped(reply.bytes);
  return JSON.stringify(reply);
}

/** Elements of an array or a set. */
export const items = (reply) => (Array.isArray(reply) ? reply : reply?.set ?? []);

/** `[name, value]` pairs of a map, or of an array that lists them flat. */
export function pairs(reply) {
  // An array has a method of that name.
  if (!Array.isArray(reply) && reply?.map) return reply.map;
  const flat = items(reply);
  return flat.length && Array.isArray(flat[0])
    ? flat
    : flat.flatMap((name, at) => (at % 2 ? [] : [[name, flat[at + 1]]]));
}

export const isBytes = (value) => value !== null && typeof value === "object" && "bytes" in value;

/** Bytes that are no text, as text with escapes. */
export function escaped(base64) {
  const shown = (letter) => {
    const code = letter.charCodeAt(0);
    return code >= 32 && code < 127 && letter !== "\\" ? letter : `\\x${code.toString(16).padStart(2, "0")}`;
  };
  return [...atob(base64)].map(shown).join("");
}

/** Something to compare arguments with: strings and bytes. */
export const identity = (value) => (isBytes(value) ? `b:${value.bytes}` : `t:${value}`);
