import { fileURLToPath } from "node:url";

/** What a container engine needs to run an image as a local process. */
export interface SandboxProgram {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Container port → the environment variable that tells the process which local port stands for it. */
  readonly ports: Readonly<Record<number, string>>;
}

/** The program that stands in for the sandbox image on the local engine. It maps paths where this process was told to. */
export function sandboxProgram(): SandboxProgram {
  const isolation = process.env["MOORING_ISOLATION"];
  return {
    command: [process.execPath, fileURLToPath(new URL("./main.ts", import.meta.url))],
    env: isolation === undefined ? {} : { MOORING_ISOLATION: isolation },
    ports: { 3000: "MOORING_PORT_3000" },
  };
}
