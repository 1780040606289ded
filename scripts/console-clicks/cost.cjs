// What the console costs: bytes to load, and the server's time while one is open.
const assert = require("node:assert/strict");
const fs = require("node:fs");

const BYTES_MAX = 150000;
const SECONDS = 10;

/** CPU seconds of a process, both kinds, all threads. */
function cpu(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function share(pid) {
  const before = cpu(pid);
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
  return ((cpu(pid) - before) / SECONDS) * 100;
}

exports.measure = async function measure(checks, pid) {
  const { page } = checks;
  const sizes = new Map();
  const note = (answer) => {
    const { pathname } = new URL(answer.url());
    if (!pathname.includes("/api/")) sizes.set(pathname, Number(answer.headers()["content-length"] ?? 0));
  };
  const fresh = await page.context().browser().newContext();
  const other = await fresh.newPage();
  other.on("response", note);
  await other.goto(checks.base, { waitUntil: "networkidle" });
  await fresh.close();
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  console.log(`all pages, compressed: ${bytes} bytes in ${sizes.size} files`);
  assert.ok(bytes > 20000 && bytes < BYTES_MAX, `${bytes}`);
  await checks.open("live");
  await page.waitForTimeout(2000);
  const open = await share(pid);
  await page.goto("about:blank");
  await page.waitForTimeout(1500);
  const closed = await share(pid);
  console.log(`the server's CPU with an open live page: ${open.toFixed(2)} % of a core; without: ${closed.toFixed(2)} %`);
};
