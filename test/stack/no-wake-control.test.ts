/** The control experiment to no-wake.test.ts: in the same places the unmodified class wakes the container. */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import type { EngineEvent } from "../../dev/engine/contract.ts";
import { type BackupAnswer, DrilledSandbox, keysOf, MID_BACKUP, type MidBackup, QUIET_MS } from "./backup-drill.ts";
import { useStack } from "./support.ts";

const events: EngineEvent[] = [];
const held = useStack({ onEvent: (event) => events.push(event) });

const TRANSPORTS = ["http", "rpc"] as const;

test.for(TRANSPORTS)(
  "over %s the unmodified createBackup of a stopped container wakes it, and archives an empty disk as if all was well",
  async (transport) => {
    const { stack } = held;
    const sandbox = new DrilledSandbox({ stack, events }, "ungated", transport);
    await sandbox.fill();
    await sandbox.end();
    let answer = await sandbox.backup();
    // Over rpc what is left of the connection to the dead container may spoil the first try, which wakes it all the same.
    if (answer.status !== "Completed") answer = await sandbox.backup();
    expect(answer.status).toBe("Completed");
    expect(sandbox.starts).toBe(2);
    expect(await entriesOf(answer)).toEqual(["./"]);
    await sandbox.destroy();
  },
);

test.for(TRANSPORTS)("over %s the unmodified createBackup wakes a container that dies in the middle of it", async (transport) => {
  const { stack } = held;
  const woken: MidBackup[] = [];
  for (const moment of Object.keys(MID_BACKUP) as MidBackup[]) {
    const sandbox = new DrilledSandbox({ stack, events }, "ungated", transport);
    await sandbox.fill();
    await sandbox.backupDying(moment);
    await stack.engine.quiet(QUIET_MS);
    if (sandbox.starts > 1) woken.push(moment);
    await sandbox.destroy();
  }
  console.info(`Over ${transport} the unmodified class was woken ${woken.join(", ")}.`);
  // Where depends on what its clean-up finds first: that the connection broke, or that the container is gone.
  expect(woken).not.toEqual([]);
});

/** What an archive of the stand-in server holds: a tar behind one block. */
async function entriesOf(answer: BackupAnswer): Promise<readonly string[]> {
  const archive = await (await held.stack.bucket()).get(keysOf(answer)[0] ?? "");
  const input = Buffer.from((await archive?.arrayBuffer()) ?? new ArrayBuffer(0)).subarray(512);
  return spawnSync("tar", ["--list"], { input, encoding: "utf8" }).stdout.split("\n").filter(Boolean);
}
