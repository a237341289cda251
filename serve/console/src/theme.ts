// Light or dark: as the system says, until the reader chooses. The choice is all that is kept in the browser.
const KEY = "grainstore-theme";
export type Theme = "light" | "dark";

const system = (): Theme => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function chosen(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null; // Storage may be switched off.
  }
}

const apply = (theme: Theme): void => void (document.documentElement.dataset.theme = theme);

export function startTheme(): void {
  apply(chosen() ?? system());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(chosen() ?? system()));
}

export const currentTheme = (): Theme => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

export function toggleTheme(): Theme {
  const next = currentTheme() === "dark" ? "light" : "dark";
  apply(next);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Then the choice holds until the page is left.
  }
  return next;
}
