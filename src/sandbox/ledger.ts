/**
 * What the object must know after it was reset at any moment (invariants 11 and 13).
 *
 * 1. One record under one key, so that every change is atomic.
 * 2. Written synchronously, before the memory copy changes: no other call can run between a decision and its record.
 * 3. No environment values: a resumed start gets them with its order again.
 */
import type { Exit } from "../workspace.ts";
import type { AdmissionState, Fence, StartOperation } from "./protocol.ts";

const KEY = "mooring:ledger";

export interface Admission {
  readonly state: AdmissionState;
  /** Of the start that was admitted last; null while none was. */
  readonly startId: string | null;
  /** The admitted start may call the container's start until then. */
  readonly deadlineTime: number;
  /** The row to poke. */
  readonly workspaceUid: string | null;
}

/** The container that runs or is about to, and which start it belongs to. */
export interface LiveContainer {
  readonly startId: string;
  readonly startedTime: number;
}

/** A restore that has begun and not ended well: into the container of which start, and where. */
export interface HalfRestored {
  readonly startId: string;
  readonly dir: string;
}

export interface LedgerRecord {
  readonly fence: Fence | null;
  readonly admission: Admission;
  readonly operation: StartOperation | null;
  readonly container: LiveContainer | null;
  readonly exit: Exit | null;
  /** Null where every restore that was begun has ended well. */
  readonly halfRestored: HalfRestored | null;
}

/** As it may lie in storage: older versions wrote less. */
type StoredRecord = Partial<Omit<LedgerRecord, "exit">> & { readonly exit?: Pick<Exit, "code" | "time"> | null };

const EMPTY: LedgerRecord = {
  fence: null,
  admission: { state: "None", startId: null, deadlineTime: 0, workspaceUid: null },
  operation: null,
  container: null,
  exit: null,
  halfRestored: null,
};

export class Ledger {
  readonly #storage: SyncKvStorage;
  #record: LedgerRecord;

  constructor(storage: SyncKvStorage) {
    this.#storage = storage;
    const stored = storage.get<StoredRecord>(KEY);
    this.#record = { ...EMPTY, ...stored, exit: stored?.exit ? { signalled: false, ...stored.exit } : null };
  }

  get record(): LedgerRecord {
    return this.#record;
  }

  update(change: Partial<LedgerRecord>): void {
    const next = { ...this.#record, ...change };
    this.#storage.put(KEY, next);
    this.#record = next;
  }

  /** Revokes an admission; the final one and a missing one stay as they are. */
  revoke(change: Partial<LedgerRecord> = {}): void {
    const { admission } = this.#record;
    const revoked = admission.state === "Admitted" ? { ...admission, state: "Revoked" as const } : admission;
    this.update({ ...change, admission: revoked });
  }
}
