// Each page, used as a person would.
const assert = require("node:assert/strict");

const button = (page, name) => page.getByRole("button", { name, exact: true });
const dialog = (page) => page.getByRole("dialog");

/** Looks for a key, and opens it in the tree. */
async function choose(checks, name) {
  const { page } = checks;
  await page.getByLabel("Pattern").fill(name);
  await page.locator(`.tree .name[title="${name}"]`).click();
  await checks.sees(name, ".value-head .name");
}

async function logIn(checks, name, password) {
  const { page } = checks;
  await page.getByLabel("User").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
}

exports.login = async function login(checks) {
  const { page } = checks;
  await page.goto(checks.base);
  await page.getByLabel("User").waitFor();
  await checks.look("login");
  await logIn(checks, "default", "wrong");
  await checks.sees("The name or the password is wrong", "[role=alert]");
  await logIn(checks, "default", "secret");
  await page.waitForSelector(".shell");
  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/console/"]);
};

exports.live = async function live(checks) {
  const { page } = checks;
  await checks.open("live");
  await checks.sees("hgetall", ".commands");
  // Long enough for a picture with a past.
  await page.waitForTimeout(Number(process.env.PAST_MS ?? 15000));
  await button(page, "1 min").click();
  assert.equal(await page.locator(".chart canvas").count(), 6);
  await checks.sees("live", ".state");
  await page.locator(".chart").first().hover();
  await checks.look("live");
  await page.locator("main").evaluate((main) => (main.scrollTop = 900));
  await checks.look("live-below");
  await button(page, "Pause").click();
  await checks.sees("paused");
  const frozen = await page.locator(".tiles").innerText();
  await page.waitForTimeout(1500);
  assert.equal(await page.locator(".tiles").innerText(), frozen);
  await button(page, "Go on").click();
  await page.locator("main").evaluate((main) => (main.scrollTop = 2000));
  await button(page, "Checkpoint").click();
  await checks.toast("A checkpoint is being made.");
};

exports.keys = async function keys(checks) {
  const { page } = checks;
  await checks.open("keys");
  const tree = page.getByRole("tree");
  await checks.sees("leaderboard", "[role=tree]");
  // With keys alone: down to `config`, open it, into its first key.
  await tree.focus();
  await page.keyboard.press("Home");
  const isConfig = async () => (await page.locator(".tree .active").innerText()).startsWith("config");
  for (let row = 0; row < 20 && !(await isConfig()); row += 1) await page.keyboard.press("ArrowDown");
  assert.ok(await isConfig());
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await checks.sees("config:app", ".value-head");
  await checks.sees("\"burst\"", ".value-body");
  await checks.look("keys-json");
  await button(page, "Text").click();
  await page.locator(".value-body textarea").fill("{\"theme\":\"light\"}");
  await button(page, "Save").click();
  await checks.toast("Saved.");
  await checks.sees("\"theme\": \"light\"", ".value-body");
  await choose(checks, "user:123");
  await checks.sees("user123@example.com", ".value-body");
  await page.locator(".value-body tr", { hasText: "city" }).getByLabel("Change").click();
  await dialog(page).getByLabel("Value").fill("Heraklion");
  await dialog(page).getByText("Save").click();
  await checks.sees("Heraklion", ".value-body");
  await button(page, "Add").click();
  await dialog(page).getByLabel("Field").fill("note");
  await dialog(page).getByLabel("Value").fill("two\nlines");
  await page.locator("dialog .primary").click();
  await checks.sees("two", ".value-body");
  await page.locator(".value-body tr", { hasText: "note" }).getByLabel("Remove").click();
  await page.locator("dialog .danger").click();
  await checks.toast("Removed.");
  await button(page, "TTL").click();
  await dialog(page).getByLabel("Seconds from now").fill("500");
  await dialog(page).getByText("Save").click();
  await checks.sees("expires in", ".value-head");
  await checks.look("keys-hash");
  for (const [name, text] of [["leaderboard:weekly", "player:"], ["queue:mail", "welcome"], ["tags:blog", "tag-"], ["events:orders", "order:"], ["image:logo", "89 50 4e 47"], ["report:large", "lorem ipsum"]]) {
    await choose(checks, name);
    if (name.startsWith("report")) assert.match(await page.locator(".value-body textarea").inputValue(), /^lorem ipsum/);
    else await checks.sees(text, ".value-body");
    if (name.startsWith("leaderboard")) await checks.look("keys-zset");
  }
  await button(page, "New key").click();
  await dialog(page).getByLabel("Name").fill("made:here");
  await dialog(page).getByLabel("Type").selectOption("list");
  await dialog(page).getByLabel("Value").fill("first");
  await checks.look("keys-dialog");
  await dialog(page).getByText("Create").click();
  await checks.sees("made:here", ".value-head");
  await button(page, "Rename").click();
  await dialog(page).getByLabel("New name").fill("made:there");
  await page.locator("dialog .primary").click();
  await checks.sees("made:there", ".value-head");
  await page.locator(".value-head").getByLabel("Remove").click();
  await page.locator("dialog .danger").click();
  await checks.sees("No key is chosen");
  await page.getByLabel("Pattern").fill("session:oslo:*");
  await checks.sees("200 shown");
  await tree.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await button(page, "Remove session:oslo:*").waitFor();
  await page.keyboard.press("Delete");
  await dialog(page).getByLabel("Beginning").fill("session:oslo:");
  await page.locator("dialog .danger").click();
  await checks.toast("200 keys were removed.");
  await button(page, "Big").click();
  await button(page, "Measure all keys").click();
  await checks.sees("report:large");
  await checks.look("keys-big");
  await button(page, "Hot").click();
  await page.getByLabel("For how long").selectOption("5");
  await button(page, "Count").click();
  await checks.sees("queue:mail", "table");
  await checks.look("keys-hot");
};

exports.spaces = async function spaces(checks) {
  const { page } = checks;
  await checks.open("spaces");
  await checks.sees("empty", "table");
  await checks.look("spaces");
  await button(page, "users").click();
  await checks.sees("User 100", "table");
  await button(page, "More").click();
  await checks.sees("User 200", "table");
  await page.getByLabel("Index").selectOption("age");
  await page.getByLabel("Comparison").selectOption("ge");
  await page.getByLabel("Key", { exact: true }).fill("77");
  await checks.sees("4 shown");
  await checks.look("space");
  await button(page, "Insert").click();
  await dialog(page).getByLabel("The tuple as JSON").fill('{"id": 1000, "name": "Ann", "age": 99, "tags": [1, 2]}');
  await page.locator("dialog .primary").click();
  await checks.sees("5 shown");
  await page.locator("tr", { hasText: "Ann" }).getByLabel("Replace").click();
  const tuple = dialog(page).getByLabel("The tuple as JSON");
  await tuple.fill((await tuple.inputValue()).replace("Ann", "Beth"));
  await page.locator("dialog .primary").click();
  await checks.sees("Beth", "table");
  await page.locator("tr", { hasText: "Beth" }).getByLabel("Remove").click();
  await page.locator("dialog .danger").click();
  await checks.toast("Removed.");
  await checks.sees("4 shown");
  await page.getByLabel("Key", { exact: true }).fill("old");
  await checks.sees("ERR", "[role=alert]");
  await button(page, "All spaces").click();
  await button(page, "empty").click();
  await checks.sees("No index yet");
};

exports.slowlog = async function slowlog(checks) {
  const { page } = checks;
  await checks.open("slowlog");
  await checks.sees("shop-frontend", "table");
  await button(page, "Took").click();
  assert.equal(await page.locator("th[aria-sort=descending]").innerText(), "Took ↓");
  await checks.look("slowlog");
  await button(page, "Clear").click();
  await checks.toast("The slow log is empty.");
};

exports.pubsub = async function pubsub(checks) {
  const { page } = checks;
  await checks.open("pubsub");
  await page.getByLabel("Channel or pattern").fill("news.*");
  await button(page, "Listen").click();
  await checks.sees("listening", ".state");
  for (const [channel, message] of [["news.sport", "3 : 1"], ["news.weather", "{\"city\":\"Riga\",\"sun\":true}"], ["other", "unheard"]]) {
    await page.getByLabel("Channel", { exact: true }).fill(channel);
    await page.getByLabel("Message", { exact: true }).fill(message);
    await button(page, "Publish").click();
  }
  await checks.sees("3 : 1", "[role=log]");
  await checks.sees("Riga", "[role=log]");
  assert.equal(await page.locator("[role=log]").getByText("unheard").count(), 0);
  await checks.look("pubsub");
  await page.getByLabel("Stop listening to news.*").click();
  await checks.sees("not listening");
};

exports.query = async function query(checks) {
  const { page } = checks;
  await checks.open("query");
  const box = page.getByLabel("Commands, one a line");
  await box.fill("HGETALL user:7\nINCR counter\nSET \"two words\" 'it''s'\nLPUSH counter x\nZRANGE leaderboard:weekly 0 3 WITHSCORES");
  await page.keyboard.press("Control+Enter");
  await checks.sees("user7@example.com", ".reply");
  await checks.sees("WRONGTYPE", ".reply");
  await box.fill("CLIENT KILL");
  await checks.sees("CLIENT KILL", ".help");
  await box.fill("config get slowlog*");
  await page.keyboard.press("Enter");
  await checks.sees("slowlog-max-len", ".reply");
  await box.fill("AUTH default x");
  await page.keyboard.press("Enter");
  await checks.sees("the console does not run AUTH", ".reply");
  assert.equal(await page.locator(".past button", { hasText: "AUTH" }).count(), 0);
  await checks.look("query");
  await button(page, "Lua").click();
  await page.getByLabel("Script", { exact: true }).last().fill("return {KEYS[1], redis.call('HGET', KEYS[1], ARGV[1])}");
  await page.getByLabel("KEYS", { exact: true }).fill("user:7");
  await page.getByLabel("ARGV", { exact: true }).fill("name");
  await button(page, "Run").click();
  await checks.sees("User 7", ".reply");
  await checks.look("query-lua");
};

exports.settings = async function settings(checks) {
  const { page } = checks;
  await checks.open("settings");
  await checks.sees("--requirepass");
  assert.equal(await page.locator("main").getByText("secret", { exact: true }).count(), 0);
  await checks.look("settings");
  await page.getByLabel("Filter").fill("slowlog-max-len");
  await page.getByLabel("Change commandlog-slow-execution-max-len").click();
  await dialog(page).getByLabel("commandlog-slow-execution-max-len").fill("77");
  await dialog(page).getByText("Set", { exact: true }).click();
  await checks.toast("commandlog-slow-execution-max-len is set.");
  await checks.sees("CONFIG SET", ".setting .badge");
};

exports.clients = async function clients(checks, load) {
  const { page } = checks;
  await checks.open("clients");
  await checks.sees("shop-frontend", "table");
  await checks.look("clients");
  await page.getByRole("row", { name: "shop-frontend" }).getByLabel("Close").click();
  await page.locator("dialog .danger").click();
  await load.closed;
  await page.getByLabel("Filter").fill("shop-frontend");
  await checks.sees("Nobody matches");
};

/** Somebody who may only read. */
exports.reader = async function reader(checks) {
  const { page } = checks;
  await page.getByLabel("Log out").click();
  await logIn(checks, "reader", "only");
  await page.waitForSelector(".shell");
  await checks.open("keys");
  assert.ok(await button(page, "New key").isDisabled());
  await choose(checks, "user:77");
  await checks.sees("@example.com", ".value-body");
  assert.ok(await page.locator(".value-body").getByLabel("Change").first().isDisabled());
  await checks.look("reader-keys");
  await checks.open("query");
  await page.getByLabel("Commands, one a line").fill("SET user:77 x");
  await page.keyboard.press("Enter");
  await checks.sees("NOPERM", ".reply");
  await checks.open("settings");
  await checks.sees("NOPERM", "[role=alert]");
  await page.getByLabel("Log out").click();
  await logIn(checks, "default", "secret");
  await page.waitForSelector(".shell");
};

/** A small window. */
exports.narrow = async function narrow(checks) {
  const { page } = checks;
  await page.setViewportSize({ width: 800, height: 1000 });
  for (const name of ["live", "keys"]) {
    await checks.open(name);
    await page.waitForTimeout(1500);
    await checks.look(`narrow-${name}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, "nothing is cut off at the right");
  }
  await page.setViewportSize({ width: 1440, height: 960 });
};
