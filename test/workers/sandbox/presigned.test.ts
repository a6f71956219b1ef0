/** The same where the container moves the archive by itself. */
import { beforeEach, describe, expect, test } from "vitest";
import { DEATHS, DIRECTORY, emptyBucket, runningStandalone, storeBackup, storedKeys } from "./backup-support.ts";
import { FENCE, LONG_WAIT_MS, newSandbox, order, pause, SEVERAL_TRIES_MS, TRANSPORTS } from "./support.ts";

beforeEach(emptyBucket);

const PLACES: typeof DEATHS = [
  ...DEATHS.filter(([, { diesOn }]) => diesOn !== undefined),
  ["at the upload", { diesOn: "/api/execute curl" }, "NotRunning"],
];

describe.each(TRANSPORTS)("by presigned URL, over %s", (transport) => {
  test.for(PLACES)("a backup starts nothing where the container dies %s", async ([, death, status]) => {
    const { stub, machine } = await runningStandalone(transport);
    Object.assign(machine.script, death);
    const result = await stub.createBackupIfRunning({ dir: DIRECTORY });
    expect(Date.now() - machine.endedTime).toBeLessThan(1_000);
    expect(result).toMatchObject({ status });
    await pause(300);
    expect([machine.starts, machine.running]).toEqual([1, false]);
    expect(await storedKeys()).toHaveLength(status === "Completed" ? 2 : 0);
  });

  test("a backup is restored", async () => {
    const { stub, machine } = newSandbox({ image: { [`${DIRECTORY}/from-image`]: "0" } });
    await stub.setTransport(transport);
    const restore = { objectId: await storeBackup({ a: "1" }), localBucket: false };
    const { facts } = await stub.startWorkspace(FENCE, order({ restore }), LONG_WAIT_MS);
    expect(facts.operation).toMatchObject({ state: "Succeeded", step: "Restore" });
    expect([...machine.disk.below(DIRECTORY)]).toEqual([["a", "1"]]);
  });

  test.for(["/api/session/create", "/api/execute curl", "/api/backup/restore"])(
    "a restore whose container dies at %s starts no other",
    async (diesOn) => {
      const { stub, machine } = newSandbox({ diesOn });
      await stub.setTransport(transport);
      const restore = { objectId: await storeBackup({ a: "1" }), localBucket: false };
      const { facts } = await stub.startWorkspace(FENCE, order({ restore }), LONG_WAIT_MS);
      expect(facts).toMatchObject({ running: false, operation: { state: "Failed" } });
      await pause(SEVERAL_TRIES_MS);
      expect(machine.starts).toBe(1);
    },
  );
});
