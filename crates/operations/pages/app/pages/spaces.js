import { html } from "../lib.js";
export const Spaces = () => html`<p>soon</p>`;
