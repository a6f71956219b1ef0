import { describe, expect, test } from "vitest";
import { Ledger } from "../../../src/sandbox/ledger.ts";
import { StartGate } from "../../../src/sandbox/start-gate.ts";
import { StartRun } from "../../../src/sandbox/start-run.ts";

const DEADLINE = 1_000;
const IN_TIME = DEADLINE - 1;

function setUp() {
  const records = new Map<string, unknown>();
  const storage = { get: (key: string) => records.get(key), put: (key: string, value: unknown) => records.set(key, value) };
  const ledger = new Ledger(storage as unknown as SyncKvStorage);
  const gate = new StartGate(ledger);
  const run = new StartRun("a", DEADLINE);
  ledger.update({ admission: { state: "Admitted", startId: "a", deadlineTime: DEADLINE, workspaceUid: "uid" } });
  gate.open(run);
  const passes = async (now = IN_TIME, from: StartRun = run) =>
    gate.within(from, async () => {
      try {
        gate.assertMayStart(now);
        return true;
      } catch {
        return false;
      }
    });
  return { ledger, gate, run, passes };
}

describe("the start gate", () => {
  test("lets the admitted run start a container", async () => {
    const { passes } = setUp();
    expect(await passes()).toBe(true);
  });

  test("refuses a call from outside the run", () => {
    const { gate } = setUp();
    expect(() => gate.assertMayStart(IN_TIME)).toThrow("WORKSPACE_NOT_RUNNING");
  });

  test.for<[string, (world: ReturnType<typeof setUp>) => void]>([
    ["its admission was revoked", ({ ledger }) => ledger.revoke()],
    ["the workspace was destroyed", ({ ledger }) => ledger.update({ admission: { ...ledger.record.admission, state: "Destroyed" } })],
    ["another start was admitted", ({ ledger }) => ledger.update({ admission: { ...ledger.record.admission, startId: "b" } })],
    ["it was aborted", ({ run }) => run.abort("Stopped")],
    ["it is over", ({ gate, run }) => gate.close(run)],
    ["another run of the same start took its place", ({ gate }) => gate.open(new StartRun("a", DEADLINE))],
    ["its container has answered", ({ run }) => run.closeStartWindow()],
  ])("refuses the run once %s", async ([, happen]) => {
    const world = setUp();
    expect(await world.passes()).toBe(true);
    happen(world);
    expect(await world.passes()).toBe(false);
  });

  test("refuses the run from its deadline on", async () => {
    const { passes } = setUp();
    expect(await passes(DEADLINE)).toBe(false);
  });

  test("refuses a callback of a run that the live one replaced", async () => {
    const { passes } = setUp();
    expect(await passes(IN_TIME, new StartRun("a", DEADLINE))).toBe(false);
  });

  test("refuses whoever calls after the object was reset", () => {
    const { ledger } = setUp();
    const gate = new StartGate(ledger);
    expect(() => gate.assertMayStart(IN_TIME)).toThrow("WORKSPACE_NOT_RUNNING");
  });
});
