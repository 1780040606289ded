// Runs before anything is shown, so that the page does not flash in the other theme.
try {
  const chosen = localStorage.getItem("ladon-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage, the system's theme is the one.
}
