//! The report in a real browser, at a desktop's and a phone's width: nothing sticks out sideways,
//! nothing is asked of the network, the first screen has the answer, the browser has nothing to
//! complain about, and the charts are there.
//!
//! The page forbids itself scripts, so a page around it looks at it: a frame of the wanted width,
//! and a script that writes what it saw where `--dump-dom` shows it. Needs Chromium, which `./test`
//! installs where it can; without it the test says so and proves nothing.

use std::path::Path;
use std::process::Command;

use ladon_lab::report::html;
use ladon_lab::results::file;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/results-format-1.json");

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Looks at the frame's page from outside, once it is there.
const AROUND: &str = r#"<!doctype html><meta charset="utf-8"><title>around</title>
<iframe id="frame" src="report.html" style="width:WIDTHpx;height:900px;border:0"></iframe>
<pre id="seen">waiting</pre>
<script>
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const wide = page.documentElement.clientWidth;
  const folded = page.querySelector('nav').getBoundingClientRect().top;
  const answer = page.querySelectorAll('.answer p').length;
  page.querySelectorAll('details').forEach(e => e.open = true);
  // What a scrolling box cuts off does not stick out of the page.
  const out = [...page.body.querySelectorAll('*')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 1 && box.right > wide + 1 && !e.closest('.scroll, pre, .defs');
  }).map(e => e.tagName + '.' + e.getAttribute('class'));
  const shown = [...page.querySelectorAll('svg.chart')].filter(e => e.getBoundingClientRect().width > 100);
  const letters = shown.flatMap(e => [...e.querySelectorAll('text')]);
  const heights = letters.map(e => e.getBoundingClientRect().height);
  const cut = shown.flatMap(e => [...e.querySelectorAll('text')].filter(t => {
    const letters = t.getBoundingClientRect(), chart = e.getBoundingClientRect();
    return letters.right > chart.right + 1 || letters.left < chart.left - 1;
  })).map(t => t.textContent);
  const unseen = shown.flatMap(e => [...e.querySelectorAll('rect[class*=edge]')])
    .filter(e => !/^(rgb|url)/.test(view.getComputedStyle(e).fill)).length;
  const seen = {
    width: wide, folded, answer, scrolls: page.documentElement.scrollWidth, out: out.slice(0, 5),
    requests: view.performance.getEntriesByType('resource').length,
    charts: shown.length, captions: page.querySelectorAll('figure').length,
    bars: page.querySelectorAll('rect.edge').length, letters: Math.min(...heights), cut, unseen,
    unnamed: page.querySelectorAll('svg.chart:not([aria-label])').length,
    headless: [...page.querySelectorAll('table')].filter(t => !t.querySelector('thead th[scope=col]')).length,
    page: view.getComputedStyle(page.body).backgroundColor, ink: view.getComputedStyle(page.body).color,
  };
  document.getElementById('seen').textContent = JSON.stringify(seen);
};
</script>"#;

fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    })
}

/// What the script saw at a width, and what the browser logged.
fn look(browser: &str, folder: &Path, width: u32, dark: bool) -> (serde_json::Value, String) {
    let around = folder.join(format!("around-{width}.html"));
    std::fs::write(&around, AROUND.replace("WIDTH", &width.to_string())).unwrap();
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
        // A page from a file may otherwise not look into its own frame.
        .arg("--allow-file-access-from-files")
        .args(["--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--window-size={},1000", width.max(500) + 40))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", around.display()));
    let output = command.output().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let seen = dom
        .split_once("<pre id=\"seen\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .map(|(seen, _)| seen.replace("&amp;", "&"))
        .unwrap_or_else(|| panic!("no answer in {dom}\n{log}"));
    let seen = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}\n{log}"));
    let console = log.lines().filter(|line| line.contains("CONSOLE"));
    (seen, console.collect::<Vec<&str>>().join("\n"))
}

#[test]
fn the_report_is_whole_at_every_width_by_day_and_by_night() {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED: none of {BROWSERS:?} is installed, so nobody looked at the report");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let results = file::read(Path::new(FIXTURE)).unwrap();
    html::write(folder.path(), &[results]).unwrap();
    let mut pages = Vec::new();
    for (width, dark) in [(1280, false), (390, false), (390, true)] {
        let (seen, console) = look(browser, folder.path(), width, dark);
        let number = |name: &str| seen[name].as_f64().unwrap_or(f64::NAN);
        assert!((number("width") - f64::from(width)).abs() < 20.0, "{seen}");
        assert!(number("scrolls") <= number("width"), "{width}: sticks out: {seen}");
        assert_eq!(seen["out"], serde_json::json!([]), "{width}: {seen}");
        assert_eq!(number("requests"), 0.0, "{width}: {seen}");
        assert_eq!(console, "", "{width}");
        // What is said at once fits the first screen.
        assert!(number("folded") < 900.0 && number("answer") >= 3.0, "{width}: {seen}");
        // One of the two widths of each chart is shown.
        assert!(number("charts") >= 15.0, "{seen}");
        assert_eq!(number("charts"), number("captions"), "{width}: {seen}");
        assert!(number("bars") > 100.0, "{seen}");
        assert!(number("letters") >= 11.0, "{width}: letters too small: {seen}");
        assert_eq!(seen["cut"], serde_json::json!([]), "{width}: letters leave a chart");
        assert_eq!(number("unseen"), 0.0, "{width}: a bar has no colour: {seen}");
        assert_eq!(number("unnamed"), 0.0, "{seen}");
        assert_eq!(number("headless"), 0.0, "{seen}");
        pages.push((seen["page"].clone(), seen["ink"].clone()));
    }
    assert_eq!(pages[0], pages[1]);
    assert_ne!(pages[1].0, pages[2].0, "the night has the day's page");
    assert_ne!(pages[1].1, pages[2].1, "the night has the day's ink");
}
