// Icons: strokes on a grid of 24.
import { html } from "./lib.js";

const PATHS = {
  live: "M3 12h4l3-8 4 16 3-8h4",
  keys: "M15 7a4 4 0 1 1-3.500 6L4 20.500M7 17.500l2 2M10 14.500l2 2",
  spaces: "M4 5h16v14H4zM4 10h16M10 10v9",
  slow: "M12 7v5l3 2M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18",
  pubsub: "M12 12h.01M8.500 15.500a5 5 0 0 1 0-7M15.500 8.500a5 5 0 0 1 0 7M5.600 18.400a9 9 0 0 1 0-12.800M18.400 5.600a9 9 0 0 1 0 12.800",
  clients: "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7M3 20c0-3.300 2.700-6 6-6s6 2.700 6 6M16 4.500a3.500 3.500 0 0 1 0 6.500M17.500 14.300c2.100.900 3.500 3 3.500 5.700",
  query: "M4 6l6 6-6 6M12 18h8",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 4.500v5M8 14.500v5",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600L19 19M19 5l-1.400 1.400M6.400 17.600L5 19",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500",
  exit: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  plus: "M12 5v14M5 12h14",
  refresh: "M20 11a8 8 0 1 0-2.300 6.300M20 4v7h-7",
  play: "M7 4l13 8-13 8z",
  pause: "M8 5v14M16 5v14",
  stop: "M6 6h12v12H6z",
  edit: "M4 20l1-5L16 4l4 4L9 19z",
  close: "M6 6l12 12M18 6L6 18",
  right: "M9 5l7 7-7 7",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14M16 16l4.500 4.500",
  save: "M5 12l5 5L20 7",
};

/** An icon that only decorates. */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
