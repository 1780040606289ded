import { html } from "../lib.js";
export const SlowLog = () => html`<p>soon</p>`;
