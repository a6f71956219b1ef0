/** An engine in a process of its own, for tests that kill it: node engine-host.ts <state directory>. */
import { join } from "node:path";
import { startEngine } from "../../dev/engine/engine.ts";
import { PROGRAM } from "./program.ts";

const stateDirectory = process.argv[2] ?? "";

// "deaf" does not notice that its engine is gone.
const DEAF = { command: [process.execPath, "-e", "setInterval(() => {}, 1000)"], env: {}, ports: {} };

await startEngine({
  socketPath: join(stateDirectory, "engine.sock"),
  stateDirectory,
  image: (reference) => (reference === "deaf" ? DEAF : PROGRAM),
});
process.stdout.write("ready\n");
