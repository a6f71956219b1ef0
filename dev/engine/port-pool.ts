import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below the ports that systems give to outgoing connections, so that none of those takes a port before its process binds it. */
const FIRST = 20_000;
const COUNT = 12_000;

let next = randomInt(COUNT);

/** Local ports that are free now. None is handed out twice before all the others were. */
export async function takePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < count; tries += 1) {
    if (tries === COUNT) throw new Error("No local port is free.");
    const port = FIRST + next;
    next = (next + 1) % COUNT;
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
