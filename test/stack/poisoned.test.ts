/** Workspaces that can never become Ready do not keep the others from it, and each can be deleted (invariants 5 and 10). */
import { expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import type { ObjectFaults } from "../../dev/engine/faults.ts";
import { createAll, get, put, removeAll, useStack } from "./support.ts";

const held = useStack({ variables: { START_TIMEOUT_SECONDS: "2" } });

const POISONS: Readonly<Record<string, ObjectFaults>> = {
  "never-listens": { hangStart: true },
  "no-image": { failStart: "NoSuchImage" },
  "always-fails": { failStart: { message: "the host is on fire" } },
  "dies-at-once": { exit: { afterMs: 1, code: 1 } },
};

test("starts that hang, fail for ever or find no image, and a spec that no longer parses, delay nobody for long", async () => {
  const { stack } = held;
  const names = [...Object.keys(POISONS), "unreadable"];
  const healthy = ["h-1", "h-2", "h-3"];
  await ticking(stack, async () => {
    const objects: Record<string, ObjectFaults> = {};
    for (const [name, poison] of Object.entries(POISONS)) {
      // The object's id is known once its start was admitted.
      stack.engine.setFaults({ objects: { ...objects, "*": poison } });
      await put(stack, name);
      objects[await doIdOf(name)] = poison;
    }
    stack.engine.setFaults({ objects });
    await put(stack, "unreadable");
    const database = await stack.database();
    await database.prepare("UPDATE workspaces SET spec = '{\"operatingMode\":\"Flying\"}' WHERE name = 'unreadable'").run();

    await createAll(stack, healthy);
    const phases = await Promise.all(names.map(async (name) => (await get(stack, name))?.status.phase));
    expect(phases).not.toContain("Ready");
    expect((await get(stack, "unreadable"))?.status).toMatchObject({ phase: "Stalled" });

    await removeAll(stack, [...names, ...healthy]);
  });
  expect(stack.engine.instances()).toEqual([]);
  expect(stack.engine.counters().maxConcurrentStarts).toBe(1);
});

async function doIdOf(name: string): Promise<string> {
  const database = await held.stack.database();
  const read = () => database.prepare("SELECT do_id FROM instances WHERE name = ?").bind(name).first<string>("do_id");
  await expect.poll(read, { timeout: 30_000 }).not.toBeNull();
  return (await read()) ?? "";
}
