// What surrounds every page: the way to the others, and who is here.
import { html, useEffect, useRef, useState } from "./lib.js";
import { Icon } from "./icons.js";
import { duration } from "./format.js";
import { toggleTheme, useTheme } from "./theme.js";
import { Live } from "./pages/live.js";
import { Keys } from "./pages/keys.js";
import { Spaces } from "./pages/spaces.js";
import { SlowLog } from "./pages/slowlog.js";
import { PubSub } from "./pages/pubsub.js";
import { Clients } from "./pages/clients.js";
import { Query } from "./pages/query.js";
import { Settings } from "./pages/settings.js";

const PAGES = [
  ["live", "Live", "live", Live],
  ["keys", "Keys", "keys", Keys],
  ["spaces", "Spaces", "spaces", Spaces],
  ["slowlog", "Slow log", "slow", SlowLog],
  ["pubsub", "Pub/Sub", "pubsub", PubSub],
  ["clients", "Clients", "clients", Clients],
  ["query", "Query", "query", Query],
  ["settings", "Settings", "settings", Settings],
];

export function Shell({ session, page, onLeave }) {
  const theme = useTheme();
  const main = useRef(null);
  const [uptime, setUptime] = useState("");
  const [, title, , Page] = PAGES.find(([name]) => name === page) ?? PAGES[0];
  useEffect(() => {
    const show = () => setUptime(duration((Date.now() - session.started) / 1000));
    show();
    const timer = setInterval(show, 30000);
    return () => clearInterval(timer);
  }, [session]);
  useEffect(() => {
    document.title = `${title} · Ladon ${session.listens}`;
    main.current.scrollTop = 0;
  }, [page]);
  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>To the page</a>
    <nav class="side" aria-label="Pages">
      <div class="brand"><img src="logo.svg" alt="" width="30" height="30" /><div><strong>Ladon</strong><span>${session.version}</span></div></div>
      <ul>
        ${PAGES.map(([name, label, icon]) => html`<li key=${name}>
          <a href="#/${name}" aria-label=${label} aria-current=${name === page ? "page" : undefined}><${Icon} name=${icon} /><span>${label}</span></a>
        </li>`)}
      </ul>
      <div class="server">
        <div><span>Listens</span><b title=${session.listens}>${session.listens || "–"}</b></div>
        <div><span>Gate</span><b>${session.gate}</b></div>
        <div><span>IO</span><b>${session.threads} × ${session.io_backend}</b></div>
        <div><span>Up</span><b>${uptime}</b></div>
      </div>
      <div class="who">
        <span class="avatar" aria-hidden="true">${session.user.slice(0, 1).toUpperCase()}</span>
        <b title=${session.user}>${session.user}</b>
        <button type="button" class="button only" aria-label=${theme === "dark" ? "Light theme" : "Dark theme"} title="Theme" onClick=${toggleTheme}>
          <${Icon} name=${theme === "dark" ? "sun" : "moon"} />
        </button>
        <button type="button" class="button only" aria-label="Log out" title="Log out" onClick=${onLeave}><${Icon} name="exit" /></button>
      </div>
    </nav>
    <main ref=${main} id="main" tabindex="-1"><${Page} key=${page} session=${session} /></main>
  </div>`;
}
