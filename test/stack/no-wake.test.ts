/** Backups around the death of a container, without a controller: none is started, whatever happens (invariant 6). */
import { expect, test } from "vitest";
import type { EngineEvent } from "../../dev/engine/contract.ts";
import { TRANSPORTS } from "../../dev/worker/transport.ts";
import { type BackupAnswer, DrilledSandbox, keysOf, type MidBackup, QUIET_MS, storedKeys } from "./backup-drill.ts";
import { useStack } from "./support.ts";

const events: EngineEvent[] = [];
const held = useStack({ onEvent: (event) => events.push(event) });

const SECOND_MS = 1000;

const GONE = ["NotRunning"];
/** The archive has arrived whole: where its metadata is written in time, the backup is good although its container is gone. */
const GONE_OR_GOOD = ["NotRunning", "Completed"];

// oxfmt-ignore
const OUTCOMES: Readonly<Record<MidBackup, readonly string[]>> = {
  "at the creation of its session": GONE,
  "before the archive is made":     GONE,
  "when the archive is made":       GONE,
  "half way through the upload":    GONE,
  "before the metadata":            GONE_OR_GOOD,
  "at the clean-up of the archive": GONE_OR_GOOD,
  "at the clean-up of the session": GONE_OR_GOOD,
};
const MOMENTS = Object.keys(OUTCOMES) as readonly MidBackup[];

test.for(TRANSPORTS)(
  "over %s a backup of a container that dies starts none, tells within a second and leaves nothing",
  async (transport) => {
    const { stack } = held;
    const sandboxes = new Map(MOMENTS.map((moment) => [moment, new DrilledSandbox({ stack, events }, "standalone", transport)]));
    const before = new Set(await storedKeys(stack));
    const answers: BackupAnswer[] = [];
    for (const [moment, sandbox] of sandboxes) {
      await sandbox.fill();
      const { answer, lateMs } = await sandbox.backupDying(moment);
      expect(OUTCOMES[moment], moment).toContain(answer.status);
      expect(lateMs, moment).toBeLessThan(SECOND_MS);
      answers.push(answer);
    }

    await stack.engine.quiet(QUIET_MS);
    expect([...sandboxes].map(([moment, { starts }]) => [moment, starts])).toEqual(MOMENTS.map((moment) => [moment, 1]));
    expect(stack.engine.instances()).toEqual([]);
    const kept = async () => (await storedKeys(stack)).filter((key) => !before.has(key)).toSorted();
    const good = answers.filter(({ status }) => status === "Completed").flatMap(keysOf);
    await expect.poll(kept, { timeout: 30_000 }).toEqual(good.toSorted());

    for (const [moment, sandbox] of sandboxes) {
      await sandbox.fill();
      const next = await sandbox.backup();
      expect(next.status, moment).toBe("Completed");
      expect(await storedKeys(stack)).toEqual(expect.arrayContaining([...keysOf(next)]));
      expect(sandbox.starts, moment).toBe(2);
      await sandbox.destroy();
    }
  },
);

test.for(TRANSPORTS)("over %s a backup of a container that has stopped is refused at once and starts none", async (transport) => {
  const { stack } = held;
  const before = await storedKeys(stack);
  const sandbox = new DrilledSandbox({ stack, events }, "standalone", transport);
  await sandbox.fill();
  await stack.engine.kill(sandbox.doId);
  const askedTime = Date.now();
  expect(await sandbox.backup()).toEqual({ status: "NotRunning" });
  expect(Date.now() - askedTime).toBeLessThan(SECOND_MS);
  await stack.engine.quiet(QUIET_MS);
  expect(sandbox.starts).toBe(1);
  expect(await storedKeys(stack)).toEqual(before);
});
