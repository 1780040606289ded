// The samples of the last ten minutes, and one more each second.
import { history } from "./api.js";
import { useEffect, useState } from "./lib.js";

const KEPT = 600;
const store = { samples: [], state: "connecting", listeners: new Set(), source: null };

const tell = () => store.listeners.forEach((listener) => listener({ ...store }));

async function open() {
  try {
    store.samples = await history();
  } catch (error) {
    store.state = error.status === 403 ? "forbidden" : "lost";
    tell();
    return;
  }
  if (!store.listeners.size || store.source) return;
  store.source = new EventSource("api/live");
  store.source.addEventListener("sample", (event) => {
    const sample = JSON.parse(event.data);
    // The history may have it already.
    if (sample.t <= (store.samples.at(-1)?.t ?? 0)) return;
    store.samples = [...store.samples.slice(-KEPT + 1), sample];
    store.state = "live";
    tell();
  });
  store.source.addEventListener("end", close);
  store.source.addEventListener("error", () => {
    store.state = "lost";
    // A browser tries again by itself unless the server has refused.
    if (store.source?.readyState === EventSource.CLOSED) {
      close();
      setTimeout(() => store.listeners.size && open(), 2000);
    }
    tell();
  });
  tell();
}

function close() {
  store.source?.close();
  store.source = null;
}

/** `{samples, state}`: all samples so far; the page gets another each second. */
export function useSamples() {
  const [current, set] = useState({ ...store });
  useEffect(() => {
    store.listeners.add(set);
    if (store.listeners.size === 1) open();
    return () => {
      store.listeners.delete(set);
      // Another page may ask in the same moment.
      setTimeout(() => store.listeners.size || close(), 100);
    };
  }, []);
  return current;
}
