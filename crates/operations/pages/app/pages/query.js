import { html } from "../lib.js";
export const Query = () => html`<p>soon</p>`;
