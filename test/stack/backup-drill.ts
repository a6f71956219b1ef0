/** Sandboxes that no controller looks after, backed up while their container dies. */
import type { EngineEvent } from "../../dev/engine/contract.ts";
import type { DieAtOperationFault } from "../../dev/engine/faults.ts";
import type { Transport } from "../../dev/worker/transport.ts";
import { call } from "./support.ts";
import type { TestStack } from "./test-stack.ts";

const FILE_BYTES = 4_000_000;

/** Longer than the SDK waits before it tries a start again, which is three seconds at first. */
export const QUIET_MS = 4000;

/** A process that kills itself is gone long before. */
const DEATH_LIMIT_MS = 5000;

/** When the container dies, by the operation that it is asked for. */
export const MID_BACKUP = {
  "at the creation of its session": { operation: "utils.createSession" },
  "before the archive is made": { operation: "backup.createArchive" },
  "when the archive is made": { operation: "backup.createArchive", moment: "After" },
  "half way through the upload": { operation: "files.readFileStream", moment: { sentBytes: FILE_BYTES / 2 } },
  "before the metadata": { operation: "files.readFileStream", moment: "Sent" },
  "at the clean-up of the archive": { operation: "commands.execute", command: "rm -f" },
  "at the clean-up of the session": { operation: "utils.deleteSession" },
} as const satisfies Readonly<Record<string, DieAtOperationFault>>;

export type MidBackup = keyof typeof MID_BACKUP;

export interface BackupAnswer {
  readonly status: string;
  readonly backup?: { readonly id: string };
}

export interface Drill {
  readonly stack: TestStack;
  readonly events: readonly EngineEvent[];
}

/** One sandbox, of the class of that kind, reached on one transport. */
export class DrilledSandbox {
  doId = "";
  readonly #drill: Drill;
  readonly #path: (action: string) => string;

  constructor(drill: Drill, kind: "standalone" | "ungated", transport: Transport) {
    const id = crypto.randomUUID();
    this.#drill = drill;
    this.#path = (action) => `/dev/backups/${kind}/${id}${action}?transport=${transport}`;
  }

  /** Starts it where it does not run, and gives it something to lose. */
  async fill(): Promise<void> {
    const command = `head -c ${FILE_BYTES} /dev/urandom >/workspace/file`;
    const answer = await call(this.#drill.stack, "POST", this.#path("/exec"), { command });
    const body = await answer.json<{ doId: string; exitCode: number }>();
    if (body.exitCode !== 0) throw new Error(`The sandbox was not filled: ${JSON.stringify(body)}`);
    this.doId = body.doId;
  }

  /** Ends its container; resolves when its object has noticed. */
  async end(): Promise<void> {
    await this.#drill.stack.engine.kill(this.doId);
    const state = async () => (await call(this.#drill.stack, "GET", this.#path(""))).json<{ status: string }>();
    while (!(await state()).status.startsWith("stopped")) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  async backup(): Promise<BackupAnswer> {
    return (await call(this.#drill.stack, "POST", this.#path("/backup"))).json<BackupAnswer>();
  }

  /** Its container dies at that operation, once; answers what came of the backup, and how long after the death it was known. */
  async backupDying(moment: MidBackup): Promise<{ readonly answer: BackupAnswer; readonly lateMs: number }> {
    const { stack, events } = this.#drill;
    stack.engine.setFaults({ dieAtOperation: { ...MID_BACKUP[moment], doId: this.doId, times: 1 } });
    const answer = await this.backup();
    const answeredTime = Date.now();
    const death = await this.#deathAmong(events);
    if (death?.exitCode !== 137) throw new Error(`The container did not die ${moment}: ${JSON.stringify(answer)}`);
    return { answer, lateMs: answeredTime - death.time };
  }

  /** Near the end of a backup the answer may come first. */
  async #deathAmong(events: readonly EngineEvent[]): Promise<EngineEvent | undefined> {
    const endTime = Date.now() + DEATH_LIMIT_MS;
    const find = () => events.find(({ type, doId }) => type === "Exited" && doId === this.doId);
    while (find() === undefined && Date.now() < endTime) await new Promise((resolve) => setTimeout(resolve, 20));
    return find();
  }

  get starts(): number {
    return this.#drill.stack.engine.counters().startsByObject[this.doId] ?? 0;
  }

  async destroy(): Promise<void> {
    await call(this.#drill.stack, "DELETE", this.#path(""));
  }
}

export async function storedKeys(stack: TestStack): Promise<readonly string[]> {
  return (await (await stack.bucket()).list()).objects.map(({ key }) => key);
}

export function keysOf({ backup }: BackupAnswer): readonly string[] {
  return backup === undefined ? [] : [`backups/${backup.id}/data.sqsh`, `backups/${backup.id}/meta.json`];
}
