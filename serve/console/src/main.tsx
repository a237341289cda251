// The console of Grainstore.
import { render } from "preact";
import { App } from "./app";
import { takeCode } from "./pages/signin";
import { startTheme } from "./theme";
import "./console.css";

startTheme();
// A fresh address pasted over an open page changes the hash alone: begin anew with its code.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) location.reload();
});
const place = document.getElementById("app");
if (place) render(<App code={takeCode()} />, place);
