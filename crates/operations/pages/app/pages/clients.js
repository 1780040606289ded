import { html } from "../lib.js";
export const Clients = () => html`<p>soon</p>`;
