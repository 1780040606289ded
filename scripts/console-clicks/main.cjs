// Clicks through the console. See scripts/console-clicks.sh.
const { chromium } = require("playwright-core");
const { fill } = require("./data.cjs");
const { Load } = require("./load.cjs");
const { measure } = require("./cost.cjs");
const pages = require("./pages.cjs");
const { Checks } = require("./checks.cjs");

const port = Number(process.env.PORT);
const base = `http://127.0.0.1:${port + 1}/console/`;

async function main() {
  await fill(base);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 960 }, colorScheme: "dark" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  const checks = new Checks(page, base, process.env.SHOTS);
  try {
    const load = new Load(port);
    await pages.login(checks);
    for (const use of [pages.live, pages.keys, pages.spaces, pages.slowlog, pages.pubsub, pages.query, pages.settings]) await use(checks);
    await pages.clients(checks, load);
    load.stop();
    await pages.reader(checks);
    await pages.narrow(checks);
    await measure(checks, Number(process.env.SERVER));
    checks.end();
  } catch (error) {
    await page.screenshot({ path: `${process.env.SHOTS}/failure.png` });
    throw error;
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
