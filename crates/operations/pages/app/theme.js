// Dark and light: the system's choice, until somebody chooses.
import { useEffect, useState } from "./lib.js";

const system = matchMedia("(prefers-color-scheme: light)");
const listeners = new Set();

/** The theme in use. */
export const theme = () => document.documentElement.dataset.theme ?? (system.matches ? "light" : "dark");

export function toggleTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("ladon-theme", next);
  } catch {
    // It lasts as long as the page.
  }
  listeners.forEach((listener) => listener(next));
}

system.addEventListener("change", () => listeners.forEach((listener) => listener(theme())));

/** The theme, now and after each change. */
export function useTheme() {
  const [current, set] = useState(theme());
  useEffect(() => {
    listeners.add(set);
    return () => listeners.delete(set);
  }, []);
  return current;
}

/** The value of a CSS variable in the theme in use. */
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
