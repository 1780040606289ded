import { html } from "../lib.js";
export const Keys = () => html`<p>soon</p>`;
