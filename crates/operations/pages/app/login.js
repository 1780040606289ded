// The way in.
import { login } from "./api.js";
import { html, useState } from "./lib.js";

export function Login({ onDone }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const { name, password } = Object.fromEntries(new FormData(event.target));
    setBusy(true);
    setError(null);
    try {
      await login(name, password);
      await onDone();
    } catch (refused) {
      const isWrong = refused.message.startsWith("WRONGPASS");
      setError(isWrong ? "The name or the password is wrong, or the user is off." : refused.message);
      setBusy(false);
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit}>
      <img src="logo.svg" alt="" width="56" height="56" />
      <h1>Ladon</h1>
      <p>Log in with a user of this server.</p>
      <label class="field"><span>User</span><input name="name" value="default" autocomplete="username" required autofocus /></label>
      <label class="field"><span>Password</span><input name="password" type="password" autocomplete="current-password" /></label>
      ${error && html`<p class="failure" role="alert">${error}</p>`}
      <button class="button primary wide" disabled=${busy}>${busy ? "One moment…" : "Log in"}</button>
      <small>The console can do what the user may do, and nothing else.</small>
    </form>
  </main>`;
}
