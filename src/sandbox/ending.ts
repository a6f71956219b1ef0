/**
 * Ends the workspace's container: for now, or for good (invariants 2 and 13).
 *
 * 1. Revoked first and on disk, ended then, looked at last.
 * 2. The SDK's stop and destroy are called for its own bookkeeping; whether they worked shows in what runs afterwards.
 */
import type { Sandbox } from "@cloudflare/sandbox";
import { log } from "../log.ts";
import { messageOf } from "./container-errors.ts";
import type { Ledger, LedgerRecord } from "./ledger.ts";
import type { StartGate } from "./start-gate.ts";
import type { StartOperations } from "./start-operations.ts";
import type { Teardown } from "./teardown.ts";
import { settledWithin } from "./waiting.ts";

/** The SDK's stop and destroy talk to a container and a control plane that may hang; the native kill follows in any case. */
const SDK_LIMIT_MS = 3_000;
const RUN_END_LIMIT_MS = 10_000;
const VERIFY_DELAY_SECONDS = 30;
/** The object's method that the scheduler calls. */
const VERIFICATION = "verifyWorkspaceDestroyed";

interface EndingParts {
  /** The SDK's part; its scheduler owns the object's only alarm. */
  readonly sandbox: Pick<Sandbox, "stop" | "destroy" | "schedule" | "deleteSchedules">;
  readonly storage: Pick<DurableObjectStorage, "sync">;
  readonly native: Container;
  readonly ledger: Ledger;
  readonly gate: StartGate;
  readonly teardown: Teardown;
  readonly operations: StartOperations;
}

export class Ending {
  readonly #parts: EndingParts;

  constructor(parts: EndingParts) {
    this.#parts = parts;
  }

  get isFinal(): boolean {
    return this.#parts.ledger.record.admission.state === "Destroyed";
  }

  async stop(graceMs: number): Promise<void> {
    const { storage, ledger, gate, teardown, operations } = this.#parts;
    ledger.revoke();
    const { admission } = ledger.record;
    // A start admitted meanwhile owns whatever runs then.
    const superseded = () => ledger.record.admission !== admission;
    await storage.sync();
    if (gate.run === null) await this.#endGracefully(graceMs, superseded);
    else if (!superseded()) await settledWithin(operations.abort("Stopped"), RUN_END_LIMIT_MS);
    if (superseded()) return;
    await teardown.kill();
    operations.settle(Date.now());
  }

  /** Records `change` with the revocation. What runs afterwards did not heed it, and is told again later. */
  async destroy(change: Partial<LedgerRecord> = {}): Promise<void> {
    const { sandbox, storage, native, ledger, teardown, operations } = this.#parts;
    const first = !this.isFinal;
    ledger.update({ ...change, admission: { ...ledger.record.admission, state: "Destroyed" } });
    await storage.sync();
    const runEnded = operations.abort("Destroyed");
    if (first || native.running) await this.#bySdk("destroy", sandbox.destroy());
    await teardown.kill();
    await settledWithin(runEnded, RUN_END_LIMIT_MS);
    operations.settle(Date.now());
    if (first || native.running) await this.#verifyLater();
  }

  /** A platform whose destroy did nothing, or was undone, is told again. */
  async verifyDestroyed(sandboxId: string): Promise<void> {
    const { native, teardown } = this.#parts;
    if (!this.isFinal || !native.running) return;
    log("warn", "Destroyed workspace runs a container", { sandboxId });
    await teardown.kill();
    if (native.running) await this.#verifyLater();
  }

  async #endGracefully(graceMs: number, superseded: () => boolean): Promise<void> {
    const { sandbox, native, teardown } = this.#parts;
    if (!native.running) return;
    await this.#bySdk("stop", sandbox.stop("SIGTERM"));
    await teardown.ended(graceMs, superseded);
  }

  async #bySdk(call: "stop" | "destroy", work: Promise<void>): Promise<void> {
    const done = work.catch((error: unknown) => log("warn", "Sandbox call failed", { call, error: messageOf(error) }));
    if (!(await settledWithin(done, SDK_LIMIT_MS))) log("warn", "Sandbox call hangs", { call });
  }

  async #verifyLater(): Promise<void> {
    const { sandbox } = this.#parts;
    sandbox.deleteSchedules(VERIFICATION);
    await sandbox.schedule(VERIFY_DELAY_SECONDS, VERIFICATION);
  }
}
