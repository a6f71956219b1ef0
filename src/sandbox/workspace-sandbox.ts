/**
 * The Durable Object of one workspace: the unmodified SDK class behind a start gate, with the controller's calls on top.
 *
 * Invariants (design.md section 2) that it keeps:
 *  2. No container starts but within a start operation that the controller admitted; every other attempt is refused at once.
 *  6. No call of the controller counts as activity, and none but `startWorkspace` starts a container.
 *  7. Observing makes no container request.
 * 11. A call with a lower epoch, or about another incarnation, changes nothing.
 * 13. The object may be reset at any await: what must be known then is in the ledger, and the next observation settles it.
 */
import type { BackupOptions, Sandbox } from "@cloudflare/sandbox";
import { Activity } from "./activity.ts";
import type { BackupBindings } from "./backup-objects.ts";
import { BackupOperations } from "./backup-operations.ts";
import { ContainerWatch } from "./container-watch.ts";
import { hasRow } from "./desired.ts";
import { Ending } from "./ending.ts";
import { isExpired, passFence, UNNAMED } from "./fencing.ts";
import { guardClient } from "./guarded-client.ts";
import { guardContainer } from "./guarded-container.ts";
import { rememberingRestore } from "./half-restored.ts";
import { Launcher } from "./launcher.ts";
import { Ledger } from "./ledger.ts";
import type { BackupResult } from "./no-wake-backup.ts";
import { NoWakeSandbox } from "./no-wake-sandbox.ts";
import { poke } from "./poke.ts";
import type { Answer, BackupAnswer, BackupOrder, Fence, OrphanAnswer, SandboxFacts, StartOrder, WorkspaceControl } from "./protocol.ts";
import { refusalResponse, StartRefusedError } from "./refusal.ts";
import { containerOf, replaceContainer } from "./replaced-methods.ts";
import { StartGate } from "./start-gate.ts";
import { StartOperations } from "./start-operations.ts";
import { Teardown } from "./teardown.ts";
import { Traffic } from "./traffic.ts";
import { settledWithin } from "./waiting.ts";

export interface SandboxEnv extends BackupBindings {
  readonly DB?: D1Database;
}

type StartArguments = Parameters<Sandbox["start"]>;
type FetchArguments = Parameters<Sandbox["containerFetch"]>;

const SERVICE_UNAVAILABLE = 503;
/** How long a backup is kept is the controller's decision; the SDK's own limit is far beyond. */
const TEN_YEARS_SECONDS = 10 * 365 * 86_400;

export class WorkspaceSandbox extends NoWakeSandbox<SandboxEnv> implements WorkspaceControl {
  readonly #native: Container;
  readonly #ledger: Ledger;
  readonly #gate: StartGate;
  readonly #watch: ContainerWatch;
  readonly #activity: Activity;
  readonly #traffic: Traffic;
  readonly #operations: StartOperations;
  readonly #backups: BackupOperations;
  readonly #ending: Ending;
  /** Of the start that this memory began last. */
  #startEnv: Readonly<Record<string, string>> = {};

  constructor(ctx: DurableObjectState<{}>, env: SandboxEnv) {
    const native = containerOf(ctx);
    const ledger = new Ledger(ctx.storage.kv);
    const gate = new StartGate(ledger);
    const announce = () => ctx.waitUntil(poke(env.DB, ledger.record.admission.workspaceUid, Date.now()));
    const watch = new ContainerWatch(native, ledger, announce);
    const activity = new Activity(ctx.storage.kv, ledger, () => Date.now());
    const traffic = new Traffic(activity);
    replaceContainer(ctx, guardContainer(native, gate, watch, traffic));
    super(ctx, env);
    const teardown = new Teardown(native, ledger);
    const launcher = new Launcher({
      subject: this,
      sandboxId: ctx.id.toString(),
      storage: ctx.storage,
      native,
      ledger,
      teardown,
      bucket: env.BACKUP_BUCKET,
    });
    this.#native = native;
    this.#ledger = ledger;
    this.#gate = gate;
    this.#watch = watch;
    this.#activity = activity;
    this.#traffic = traffic;
    this.#operations = new StartOperations(ledger, gate, teardown, {
      launch: (run, order, enter) => traffic.apart(() => launcher.launch(run, order, enter)),
      isRunning: () => native.running,
      refusalOf: (startId) => watch.refusalOf(startId),
      keepAlive: (work) => ctx.waitUntil(work),
      announce,
    });
    this.#backups = new BackupOperations(ctx.storage.kv, ledger, {
      take: (order) => this.createBackupIfRunning(toOptions(order), order.timeoutMs),
      isRunning: () => native.running,
      sync: () => ctx.storage.sync(),
      keepAlive: (work) => ctx.waitUntil(work),
      announce,
    });
    this.#ending = new Ending({ sandbox: this, storage: ctx.storage, native, ledger, gate, teardown, operations: this.#operations });
    guardClient(this, () => gate.trafficRefusal(native.running), traffic);
  }

  async observeWorkspace(fence: Fence): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence, Date.now());
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    this.#operations.settle(Date.now());
    return { accepted: true, facts: this.#facts() };
  }

  async startWorkspace(fence: Fence, order: StartOrder, waitMs: number): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence, Date.now());
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    if (this.#ending.isFinal) return { accepted: false, refusal: "Destroyed", facts: this.#facts() };
    this.#operations.settle(Date.now());
    this.#startEnv = order.env;
    await settledWithin(this.#operations.begin(order, Date.now()), waitMs);
    return { accepted: true, facts: this.#facts() };
  }

  async backupWorkspace(fence: Fence, order: BackupOrder, waitMs: number): Promise<BackupAnswer> {
    const refusal = passFence(this.#ledger, fence, Date.now());
    if (refusal !== null) return { accepted: false, refusal };
    return { accepted: true, report: await this.#backups.run(order, waitMs) };
  }

  async stopWorkspace(fence: Fence, graceMs: number): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence, Date.now());
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    await this.#ending.stop(graceMs);
    return { accepted: true, facts: this.#facts() };
  }

  async destroyWorkspace(fence: Fence): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence, Date.now());
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    await this.#ending.destroy();
    return { accepted: true, facts: this.#facts() };
  }

  async destroyOrphan(epoch: number, expiresTime?: number): Promise<OrphanAnswer> {
    if (this.#hasHeardOfLater(epoch)) return "StaleEpoch";
    if (isExpired(expiresTime, Date.now())) return "Expired";
    if (await this.#isWanted()) return "Wanted";
    // Another controller may have spoken while D1 was asked, and the caller have given up.
    if (this.#hasHeardOfLater(epoch)) return "StaleEpoch";
    if (isExpired(expiresTime, Date.now())) return "Expired";
    await this.#ending.destroy({ fence: { epoch, incarnation: this.#ledger.record.fence?.incarnation ?? UNNAMED } });
    return this.#native.running ? "StillRuns" : "Gone";
  }

  /** Called by the SDK's scheduler. */
  async verifyWorkspaceDestroyed(): Promise<void> {
    await this.#ending.verifyDestroyed(this.ctx.id.toString());
  }

  override async fetch(request: Request): Promise<Response> {
    const refusal = this.#gate.trafficRefusal(this.#native.running);
    return refusal === null ? super.fetch(request) : refusalResponse(refusal);
  }

  override async containerFetch(...request: FetchArguments): Promise<Response> {
    const refusal = this.#gate.trafficRefusal(this.#native.running);
    if (refusal !== null) return refusalResponse(refusal);
    const response = await super.containerFetch(...request);
    if (response.status !== SERVICE_UNAVAILABLE) return response;
    // The SDK reports a start that the gate refused as 503, which its client would repeat.
    const refusedSince = this.#gate.trafficRefusal(this.#native.running);
    return refusedSince === null ? response : refusalResponse(refusedSince);
  }

  /** A backup is no use of the workspace, whoever asked for it. */
  override async createBackupIfRunning(options: BackupOptions, limitMs?: number): Promise<BackupResult> {
    return this.#traffic.apart(() => super.createBackupIfRunning(options, limitMs));
  }

  override async restoreBackup(...backup: Parameters<Sandbox["restoreBackup"]>): ReturnType<Sandbox["restoreBackup"]> {
    return rememberingRestore(this.#ledger, backup[0].dir, () => super.restoreBackup(...backup));
  }

  protected override secrets(): Readonly<Record<string, string>> {
    return { ...super.secrets(), ...this.#startEnv };
  }

  override async start(...options: StartArguments): Promise<void> {
    this.#assertReachable();
    await super.start(...options);
  }

  override async startAndWaitForPorts(...options: Parameters<Sandbox["startAndWaitForPorts"]>): Promise<void> {
    this.#assertReachable();
    await super.startAndWaitForPorts(...options);
  }

  /** What the SDK does by itself is not a user's doing. */
  override async alarm(...alarm: Parameters<Sandbox["alarm"]>): Promise<void> {
    await this.#traffic.apart(async () => super.alarm(...alarm));
  }

  /** How long a workspace runs is the controller's decision, whatever `sleepAfter` a caller of `getSandbox` asks for. */
  override async onActivityExpired(): Promise<void> {}

  override async onStart(): Promise<void> {
    this.#gate.containerAnswered();
    await super.onStart();
  }

  #assertReachable(): void {
    const refusal = this.#gate.trafficRefusal(this.#native.running);
    if (refusal !== null) throw new StartRefusedError(refusal);
  }

  #hasHeardOfLater(epoch: number): boolean {
    return epoch < (this.#ledger.record.fence?.epoch ?? epoch);
  }

  /** Whether the workspace that the object belongs to, by its own record, has a row: whoever calls it an orphan is mistaken then. */
  async #isWanted(): Promise<boolean> {
    const { admission } = this.#ledger.record;
    const { DB } = this.env;
    // An incarnation that was ended for good is nobody's any more.
    if (DB === undefined || admission.workspaceUid === null || this.#ending.isFinal) return false;
    if (await hasRow(DB, admission.workspaceUid)) return true;
    return this.#ledger.record.admission === admission ? false : this.#isWanted();
  }

  #facts(): SandboxFacts {
    this.#watch.reconcile();
    const { running } = this.#native;
    const { admission, operation, exit, container } = this.#ledger.record;
    return {
      running,
      admission: admission.state,
      operation,
      exit,
      startedTime: running ? (container?.startedTime ?? null) : null,
      activityTime: running ? this.#activity.time : null,
    };
  }
}

function toOptions({ backupId, directory, excludes, localBucket }: BackupOrder): BackupOptions {
  return { dir: directory, name: `mooring:${backupId}`, excludes: [...excludes], ttl: TEN_YEARS_SECONDS, localBucket };
}
