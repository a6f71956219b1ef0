// A container for the engine's tests: answers on two ports, can be told to exit, ends when the engine does.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const marker = join(process.env.MOORING_CONTAINER_ROOT, "marker");

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://container");
  if (url.pathname === "/exit") process.exit(Number(url.searchParams.get("code")));
  if (url.pathname === "/mark") writeFileSync(marker, "x");
  if (url.pathname === "/child") {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    response.end(String(child.pid));
    return;
  }
  response.end(JSON.stringify({ marked: existsSync(marker), pid: process.pid, env: process.env }));
});
server.listen(Number(process.env.PORT), "127.0.0.1");
if (process.env.PREVIEW_PORT) createServer((_, response) => response.end("preview")).listen(Number(process.env.PREVIEW_PORT), "127.0.0.1");

process.on("SIGTERM", () => process.exit(0));
process.stdin.resume().on("end", () => process.exit(1));
