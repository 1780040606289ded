// A new key of any type.
import { all, isError } from "../api.js";
import { html } from "../lib.js";
import { dialog, Field, toast } from "../widgets.js";

/** How a first element is written, by type. */
const COMMANDS = {
  string: ({ name, value }) => ["SET", name, value, "NX"],
  hash: ({ name, field, value }) => ["HSET", name, field || "field", value],
  list: ({ name, value }) => ["RPUSH", name, value],
  set: ({ name, value }) => ["SADD", name, value],
  zset: ({ name, field, value }) => ["ZADD", name, field || "0", value],
  stream: ({ name, field, value }) => ["XADD", name, "*", field || "field", value],
};

/** Asks for a key and makes it; returns its name, or nothing. */
export async function askNewKey(db) {
  const asked = await dialog(
    html`<${Field} label="Name" name="name" required autocomplete="off" />
      <label class="field"><span>Type</span><select name="type">${Object.keys(COMMANDS).map((type) => html`<option key=${type}>${type}</option>`)}</select></label>
      <${Field} label="Field, or score" name="field" hint="of a hash, a stream or a sorted set" autocomplete="off" />
      <${Field} label="Value" name="value" as="textarea" rows="4" />`,
    { title: "New key", action: "Create" },
  );
  if (!asked) return undefined;
  try {
    const [exists] = await all([["EXISTS", asked.name]], db);
    if (exists === 1) throw new Error("There is a key of this name.");
    const [reply] = await all([COMMANDS[asked.type](asked)], db);
    if (isError(reply)) throw new Error(reply.error);
    return asked.name;
  } catch (error) {
    toast(error.message, "bad");
    return undefined;
  }
}
