import { randomUUID } from "node:crypto";

/** The SDK release whose protocol this server speaks; the SDK compares it with its own version. */
export const SANDBOX_VERSION = "0.12.10";

/** `namespace`: /workspace is the container's own, for everybody. `paths`: this server translates paths. */
export type Isolation = "namespace" | "paths";

export interface Settings {
  readonly port: number;
  /** The directory on this machine that is the container's disk. */
  readonly root: string;
  readonly isolation: Isolation;
  readonly ignoreSigterm: boolean;
  /** What every process of this container carries in its environment, so that none is forgotten at the end. */
  readonly containerId: string;
}

/** Reads what the engine says through the environment; throws when the port or the disk is missing. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const port = Number(env["MOORING_PORT_3000"]);
  if (!Number.isInteger(port) || port <= 0) throw new Error("MOORING_PORT_3000 must name the local port that stands for port 3000");
  const root = env["MOORING_CONTAINER_ROOT"];
  if (root === undefined || root === "") throw new Error("MOORING_CONTAINER_ROOT must name the container's disk");
  return {
    port,
    root,
    isolation: env["MOORING_ENTERED"] === undefined ? "paths" : "namespace",
    ignoreSigterm: env["MOORING_IGNORE_SIGTERM"] === "1",
    containerId: env["MOORING_CONTAINER_ID"] ?? randomUUID(),
  };
}

/** The environment of a process inside the container: the container's own, without what only this server needs. */
export function containerEnvironment(settings: Settings, env: NodeJS.ProcessEnv): Record<string, string> {
  const kept = Object.entries(env).flatMap(([name, value]) => (value === undefined || name.startsWith("MOORING_") ? [] : [[name, value]]));
  const home = settings.isolation === "paths" ? { HOME: `${settings.root}/root`, TMPDIR: `${settings.root}/tmp` } : {};
  return { ...Object.fromEntries(kept), ...home, LANG: "C.UTF-8", LC_ALL: "C.UTF-8", MOORING_CONTAINER_ID: settings.containerId };
}
