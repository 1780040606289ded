// What every module of the console is made with.
import { h, render, Component, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "../vendor/preact-hooks.js";
export { h, render, Component, Fragment };

/** JSX in template strings. */
export const html = htm.bind(h);
