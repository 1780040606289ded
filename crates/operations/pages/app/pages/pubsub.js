import { html } from "../lib.js";
export const PubSub = () => html`<p>soon</p>`;
