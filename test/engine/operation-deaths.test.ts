import { describe, expect, it } from "vitest";
import type { Faults } from "../../dev/engine/faults.ts";
import { sandboxProgram } from "../../dev/sandbox-server/program.ts";
import { bench, doId, until } from "./fixture.ts";
import type { Bench } from "./fixture.ts";
import type { WorkerdClient } from "./workerd-client.ts";

const PING: Faults = { dieAtOperation: { operation: "utils.ping", times: 1 } };

const sandboxBench = (faults: Faults = {}) => bench({ faults, image: () => sandboxProgram() });

async function started({ client }: Bench, object: number): Promise<WorkerdClient> {
  const sandbox = client(object);
  await sandbox.start();
  await sandbox.untilListening();
  return sandbox;
}

async function dies(sandbox: WorkerdClient): Promise<void> {
  const monitor = sandbox.monitor();
  await expect(sandbox.fetch("/api/ping")).rejects.toThrow(/socket hang up|ECONNRESET/);
  expect(JSON.parse((await monitor.answer).body)).toEqual({ StatusCode: 137 });
}

describe("death at an operation", () => {
  it("comes with it, as often as asked, and is told apart from other deaths", async () => {
    const here = await sandboxBench(PING);
    const sandbox = await started(here, 1);
    expect((await sandbox.fetch("/api/version")).status).toBe(200);
    await dies(sandbox);
    expect(here.engine.counters()).toMatchObject({ diedMidOperation: 1, starts: 1 });
    const [died, exited] = here.events.slice(-2);
    expect([died?.type, exited?.type, exited?.exitCode]).toEqual(["DiedMidOperation", "Exited", 137]);

    await sandbox.destroy();
    const again = await started(here, 1);
    expect((await again.fetch("/api/ping")).status).toBe(200);
    await here.engine.kill(doId(1));
    expect(here.engine.counters().diedMidOperation).toBe(1);
  });

  it("can be asked for, and taken back, while the container runs", async () => {
    const here = await sandboxBench();
    const sandbox = await started(here, 1);
    here.engine.setFaults(PING);
    here.engine.setFaults({});
    expect((await sandbox.fetch("/api/ping")).status).toBe(200);
    here.engine.setFaults(PING);
    await dies(sandbox);
    expect(here.engine.counters().diedMidOperation).toBe(1);
  });

  it("spares the others: of another object, or once the deaths are used up", async () => {
    const here = await sandboxBench({ dieAtOperation: { operation: "utils.ping", doId: doId(2) } });
    const [first, second] = [await started(here, 1), await started(here, 2)];
    expect((await first.fetch("/api/ping")).status).toBe(200);
    await dies(second);
    here.engine.setFaults(PING);
    const third = await started(here, 3);
    await dies(third);
    await until(() => here.engine.instances().length === 1);
    expect((await first.fetch("/api/ping")).status).toBe(200);
  });

  it("is not what an engine's own kill is counted as", async () => {
    const here = await sandboxBench(PING);
    await started(here, 1);
    await here.engine.kill(doId(1));
    expect(here.engine.counters().diedMidOperation).toBe(0);
  });
});
