// What every page is checked for: errors in the browser, accessibility, a picture in both themes.
const assert = require("node:assert/strict");
const fs = require("node:fs");

const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

exports.Checks = class Checks {
  constructor(page, base, shots) {
    Object.assign(this, { page, base, shots, errors: [], violations: [] });
    page.on("pageerror", (error) => this.errors.push(`${page.url()}: ${error.stack}`));
    page.on("console", (message) => {
      // A refused request is what some clicks are about.
      if (message.type() === "error" && !message.text().includes("Failed to load resource")) this.errors.push(`${page.url()}: ${message.text()}`);
    });
  }

  async open(name) {
    await this.page.goto(`${this.base}#/${name}`);
    await this.page.waitForSelector("main h1");
  }

  /** Waits until a text is on the page. */
  async sees(text, where = "body") {
    await this.page.locator(where).getByText(text).first().waitFor();
  }

  async toast(text) {
    await this.page.locator(".toast").getByText(text).first().waitFor();
  }

  /** A picture and axe-core's opinion, in both themes. */
  async look(name) {
    for (const theme of ["dark", "light"]) {
      await this.theme(theme);
      await this.page.waitForTimeout(350);
      await this.page.screenshot({ path: `${this.shots}/${name}-${theme}.png` });
      const found = await this.axe();
      for (const violation of found) this.violations.push(`${name} (${theme}): ${violation}`);
    }
    await this.theme("dark");
    console.log(`ok ${name}`);
  }

  async theme(theme) {
    await this.page.evaluate((theme) => {
      const root = document.documentElement;
      const toggle = document.querySelector("[title=Theme]");
      if (!toggle) root.dataset.theme = theme;
      else if ((root.dataset.theme ?? "dark") !== theme) toggle.click();
    }, theme);
  }

  /** axe-core runs beside the page, whose policy lets no script in. */
  async axe() {
    const session = await this.page.context().newCDPSession(this.page);
    await session.send("Runtime.evaluate", { expression: AXE });
    const run = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => JSON.stringify(violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} (${node.failureSummary.slice(0, 200)})`).join(' | ')}`)))";
    const { result } = await session.send("Runtime.evaluate", { expression: run, awaitPromise: true });
    await session.detach();
    return JSON.parse(result.value);
  }

  end() {
    for (const line of [...this.errors, ...this.violations]) console.error(line);
    assert.deepEqual([this.errors.length, this.violations.length], [0, 0], "errors in the browser, accessibility");
    console.log("all pages: no errors, axe-core has nothing to say");
  }
};
