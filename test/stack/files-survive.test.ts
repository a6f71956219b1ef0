/** What is below the working directory is the same at each Ready, whatever became of the containers in between. */
import { expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import { digestTree, seedTree } from "../../dev/file-tree.ts";
import type { Transport } from "../../dev/worker/transport.ts";
import { call, get, put, remove, useStack, waitFor, waitUntilGone } from "./support.ts";

const MB = 1_000_000;

interface Subject {
  readonly name: string;
  readonly transport: Transport;
}

/** Over rpc the SDK wraps each piece of an archive twice, and needs several times as long. */
const RUNS: readonly { readonly transport: Transport; readonly bigFileBytes: number }[] = [
  { transport: "http", bigFileBytes: 200 * MB },
  { transport: "rpc", bigFileBytes: 20 * MB },
];

const held = useStack({ variables: { LEASE_SECONDS: "10", BACKUP_TIMEOUT_SECONDS: "120", PREPARE_TIMEOUT_SECONDS: "120" } });

const SPEC = {
  idle: { timeoutSeconds: 600 },
  backup: { onSuspend: "Require" },
  deletion: { finalBackup: "Require", deadlineSeconds: 120 },
};
const WAIT_MS = 120_000;

/** The transport is stored with the object, so whatever restores goes by it as well. */
async function exec({ name, transport }: Subject, command: string): Promise<string> {
  const sandboxId = (await get(held.stack, name))?.status.sandboxId;
  const answer = await call(held.stack, "POST", `/dev/workspaces/${sandboxId}/exec?transport=${transport}`, { command });
  const outcome = await answer.json<{ readonly exitCode: number; readonly stdout: string }>();
  expect(outcome).toMatchObject({ exitCode: 0 });
  return outcome.stdout;
}

const digestOf = (subject: Subject) => exec(subject, digestTree("/workspace"));

const pathOf = (name: string) => `/v1/namespaces/default/workspaces/${name}`;

async function backUp({ name }: Subject): Promise<void> {
  const { id } = await (await call(held.stack, "POST", `${pathOf(name)}/backups`)).json<{ readonly id: string }>();
  const state = async () => {
    return (await (await call(held.stack, "GET", `${pathOf(name)}/backups/${id}`)).json<{ readonly state: string }>()).state;
  };
  await expect.poll(state, { timeout: WAIT_MS, interval: 100 }).toBe("Completed");
}

/** Its container ends by itself; resolves when another one is Ready. */
async function loseContainer({ name }: Subject, end: (doId: string) => Promise<void> | void): Promise<void> {
  const { engine } = held.stack;
  const [instance] = engine.instances();
  await end(instance?.id ?? "");
  await expect.poll(() => engine.instances()[0]?.ordinal ?? 0, { timeout: WAIT_MS }).toBeGreaterThan(instance?.ordinal ?? 0);
  await waitFor(held.stack, name, "Ready", WAIT_MS);
}

async function finalBackupOf({ name }: Subject): Promise<string> {
  const answer = await call(held.stack, "GET", `${pathOf(name)}/backups`);
  const { items } = await answer.json<{
    readonly items: readonly { readonly id: string; readonly trigger: string; readonly state: string }[];
  }>();
  const final = items.find(({ trigger, state }) => trigger === "Final" && state === "Completed");
  expect(final, JSON.stringify(items)).toBeDefined();
  return final?.id ?? "";
}

test.for(RUNS)("a tree is the same at each Ready, reached over $transport", { timeout: 600_000 }, async ({ transport, bigFileBytes }) => {
  const { stack } = held;
  const subject: Subject = { name: `kept-${transport}`, transport };
  const { name } = subject;
  const wish = (more: object = {}) => put(stack, name, { ...SPEC, ...more });
  const reach = (condition: string) => waitFor(stack, name, condition, WAIT_MS);
  await ticking(stack, async () => {
    await wish();
    await reach("Ready");
    await exec(subject, seedTree({ directory: "/workspace", smallFiles: 3000, bigFileBytes }));
    const digest = await digestOf(subject);

    await wish({ operatingMode: "Suspended" });
    await reach("Suspended");
    expect(stack.engine.instances()).toEqual([]);
    await wish();
    await reach("Ready");
    expect(await digestOf(subject), "suspended and resumed").toBe(digest);

    await wish({ idle: { timeoutSeconds: 10 } });
    await reach("Suspended");
    await call(stack, "POST", `${pathOf(name)}:wake`);
    await wish();
    await reach("Ready");
    expect(await digestOf(subject), "idle and woken").toBe(digest);

    await exec(subject, "echo more >/workspace/after && ln /workspace/after /workspace/links/after");
    const changed = await digestOf(subject);
    await backUp(subject);
    await loseContainer(subject, (doId) => stack.engine.kill(doId, 137));
    expect(await digestOf(subject), "crashed").toBe(changed);
    await loseContainer(subject, (doId) => stack.engine.exitAfter(doId, 0, 143));
    expect(await digestOf(subject), "rolled out").toBe(changed);

    await exec(subject, "rm -rf /workspace/many/3");
    const last = await digestOf(subject);
    await remove(stack, name);
    await waitUntilGone(stack, name, WAIT_MS);
    await wish({ source: { backup: await finalBackupOf(subject) } });
    await reach("Ready");
    expect(await digestOf(subject), "deleted and created again").toBe(last);
    await wish({ deletion: { finalBackup: "Skip" } });
    await remove(stack, name);
    await waitUntilGone(stack, name, WAIT_MS);
  });
  expect(stack.engine.instances()).toEqual([]);
  expect(stack.engine.counters().maxConcurrentStarts).toBe(1);
});
