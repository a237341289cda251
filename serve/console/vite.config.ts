// Fixed names and no hashes: the server compiles the files of dist in, and a build of the same sources is the same.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The license of Preact asks to go along with it.
const LICENSE = readFileSync(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8").trim();

export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    assetsDir: "",
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: {
      output: {
        entryFileNames: "console.js",
        chunkFileNames: "console-[name].js",
        assetFileNames: "console[extname]",
        codeSplitting: false,
        postBanner: `/*! With Preact:\n${LICENSE}\n*/`,
      },
    },
  },
});
