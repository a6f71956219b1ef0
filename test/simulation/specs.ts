/** From a spec in short to a spec. */
import { createHash } from "node:crypto";
import type { WorkspaceSpec } from "../../src/workspace.ts";
import type { BackupTable } from "./memory-backup-rows.ts";
import type { SpecSketch } from "./lives.ts";

export function toSpec(sketch: SpecSketch, source: WorkspaceSpec["source"], now: number): WorkspaceSpec {
  const { backup, finalBackup, deadlineSeconds } = sketch;
  return {
    operatingMode: sketch.mode,
    directory: "/workspace",
    env: { VERSION: String(sketch.env) },
    idle: sketch.idleSeconds === null ? null : { timeoutSeconds: sketch.idleSeconds },
    maxLifetimeSeconds: sketch.lifetimeSeconds,
    expireTime: sketch.expiresInMs === null ? null : new Date(now + sketch.expiresInMs).toISOString(),
    paused: sketch.paused,
    source,
    setup: sketch.setup ? ["make"] : [],
    backup: backup && {
      everySeconds: backup.everySeconds,
      onSuspend: backup.onSuspend,
      excludes: [],
      retention: { keepLast: backup.keepLast, keepForSeconds: backup.keepForSeconds },
    },
    deletion: { finalBackup, deadlineSeconds },
  };
}

/** As its user would name it: a name, or the id of what is the newest now. */
export function sourceOf(
  { source }: SpecSketch,
  namespace: string,
  namespaceOf: (slot: number) => string,
  backups: BackupTable,
): WorkspaceSpec["source"] {
  // What lies in another namespace is not to be had.
  if (source === null || namespaceOf(source.slot) !== namespace) return null;
  const workspace = nameOf(source.slot);
  if (!source.isById) return { workspace };
  const good = [...backups.values()].filter(({ name, state }) => name === workspace && state === "Completed");
  const newest = good.toSorted((one, other) => (one.endedTime ?? 0) - (other.endedTime ?? 0)).at(-1);
  return newest === undefined ? { workspace } : { backup: newest.id };
}

export function nameOf(slot: number): string {
  return `w${slot}`;
}

export function uidOf(seed: number, life: number): string {
  const hex = createHash("sha256").update(`${seed}/${life}`).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
