// The console of Grainstore.
import { render } from "preact";
import { App } from "./app";
import { takeCode } from "./pages/signin";
import { startTheme } from "./theme";
import "./console.css";

startTheme();
const place = document.getElementById("app");
if (place) render(<App code={takeCode()} />, place);
