/** `npm start`: Mooring on this machine, until Ctrl-C. What it holds (the database) survives to the next start. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startCron } from "./cron.ts";
import { isFree, LOCAL_DIRECTORY, LOCAL_TOKENS, type Stack, startStack } from "./stack.ts";
import { applyMigrations, localTokens, startWranglerDev } from "./wrangler-dev.ts";

const DEFAULT_PORT = 8787;
const IMAGE_BUILD_TIMEOUT_MS = 900_000;
const logFile = join(LOCAL_DIRECTORY, "worker.log");
/** Containers end with the engine: after a restart their workspaces are to be looked at soon, not in five minutes. */
const VARIABLES = { RESYNC_INTERVAL_SECONDS: "30" };

const { values } = parseArgs({ options: { docker: { type: "boolean", default: false }, help: { type: "boolean", default: false } } });
if (values.help) {
  console.log(
    "npm start [-- --docker]\n\n  --docker  use the Docker engine of this machine and the Dockerfile\n\nPORT sets the port (8787).",
  );
} else {
  await run().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}

async function run(): Promise<void> {
  const port = Number(process.env["PORT"] ?? DEFAULT_PORT);
  if (!(await isFree(port))) throw new Error(`Port ${port} is taken; choose another: PORT=8790 npm start`);
  console.log(values.docker ? "Starting on the Docker engine of this machine …" : "Starting …");
  const local = values.docker ? await startOnDocker(port) : await startOnEngine(port);
  const stopCron = startCron(local.url, () => console.error(`A tick failed; see ${logFile}.`));
  console.log(welcome(local.url));

  const ended = await Promise.race([local.exited.then(() => "worker"), signalled()]);
  if (ended === "worker") console.error(`The Worker has ended by itself; see ${logFile}.`);
  console.log("Stopping …");
  stopCron();
  await local.stop();
  process.exit(ended === "worker" ? 1 : 0);
}

interface Local extends Pick<Stack, "url" | "stop"> {
  readonly exited: Promise<unknown>;
}

async function startOnEngine(port: number): Promise<Local> {
  const stack = await startStack({ directory: LOCAL_DIRECTORY, port, variables: VARIABLES });
  return { url: stack.url, exited: stack.worker.exited, stop: () => stack.stop() };
}

async function startOnDocker(port: number): Promise<Local> {
  const persistDirectory = join(LOCAL_DIRECTORY, "docker-state");
  applyMigrations(persistDirectory);
  const variables = { API_TOKENS: localTokens(LOCAL_TOKENS), ...VARIABLES };
  const worker = startWranglerDev({ port, persistDirectory, logFile, engine: null, variables });
  await worker.ready(IMAGE_BUILD_TIMEOUT_MS);
  return { url: worker.url, exited: worker.exited, stop: () => worker.stop() };
}

function signalled(): Promise<"signal"> {
  return new Promise((resolve) => {
    process.once("SIGINT", () => resolve("signal"));
    process.once("SIGTERM", () => resolve("signal"));
  });
}

function welcome(url: string): string {
  const workspace = `${url}/v1/namespaces/default/workspaces/alice-1`;
  const editor = '-H "Authorization: Bearer dev-editor"';
  return `
Mooring listens on ${url}
Tokens: ${LOCAL_TOKENS.map(({ token }) => token).join(", ")}

Try:
  curl -X PUT ${workspace} ${editor} -H "Content-Type: application/json" -d '{"spec": {}}'
  curl "${workspace}?waitFor=Ready&timeoutSeconds=25" ${editor}
  curl -X DELETE ${workspace} ${editor}

${values.docker ? "" : "Containers are processes here: what runs in a workspace runs as your user on this machine. For development only.\n"}Ctrl-C stops everything.
`;
}
