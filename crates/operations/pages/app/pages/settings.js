import { html } from "../lib.js";
export const Settings = () => html`<p>soon</p>`;
