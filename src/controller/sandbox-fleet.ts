/** The Fleet over the Durable Object namespace of `WorkspaceSandbox`. */
import { evidenceOf } from "../failure-evidence.ts";
import type { BackupOutcome } from "../backup.ts";
import type { Answer, BackupAnswer, Fence, OrphanAnswer, WorkspaceControl } from "../sandbox/protocol.ts";
import type { Failure, Instance, Instant, Observation } from "../workspace.ts";
import { classify } from "./failure.ts";
import { type Fleet, LeaseLostError, type OrphanOutcome } from "./fleet.ts";
import { interpretReport } from "./backup-report.ts";
import { interpret } from "./observation.ts";

const OBSERVE_TIMEOUT_MS = 5000;
/** On top of what a call was asked to wait for. */
const ANSWER_TIMEOUT_MS = 5000;
const STOP_GRACE_MS = 10_000;
/** For the SDK's stop and for the kill after the grace, each of which may hang for a while. */
const STOP_TIMEOUT_MS = STOP_GRACE_MS + 10_000;
/** The object gives the SDK's destroy its own limit before it falls back to the native one. */
const DESTROY_TIMEOUT_MS = 20_000;

const LEASE_LOST = "A controller with a higher epoch is at work.";

type Namespace = Pick<DurableObjectNamespace, "idFromName" | "idFromString" | "get">;

export function createSandboxFleet(namespace: Namespace, now: () => Instant): Fleet {
  /** A stub is made anew for each call: after an error the old one stays broken. */
  const control = (doId: string): WorkspaceControl => namespace.get(namespace.idFromString(doId)) as unknown as WorkspaceControl;

  /** What arrives after its caller has given up does nothing. */
  function order(
    timeoutMs: number,
    { doId, incarnation }: Instance,
    epoch: number,
    call: (sandbox: WorkspaceControl, fence: Fence) => Promise<Answer>,
  ): Promise<Observation> {
    return ask(timeoutMs, () => call(control(doId), { epoch, incarnation, expiresTime: now() + timeoutMs }));
  }

  return {
    identify(uid: string, incarnation: number): Instance {
      const sandboxId = `${uid}-${incarnation}`;
      const doId = namespace.idFromName(sandboxId).toString();
      return { sandboxId, incarnation, doId, running: true, destroyRequested: false, adopted: false };
    },
    observe: (instance, epoch) => order(OBSERVE_TIMEOUT_MS, instance, epoch, (sandbox, fence) => sandbox.observeWorkspace(fence)),
    start: (instance, epoch, request, waitMs) =>
      order(waitMs + ANSWER_TIMEOUT_MS, instance, epoch, (sandbox, fence) => sandbox.startWorkspace(fence, request, waitMs)),
    backup: ({ doId, incarnation }, epoch, request, waitMs) =>
      askBackup(waitMs + ANSWER_TIMEOUT_MS, async (timeoutMs) =>
        control(doId).backupWorkspace({ epoch, incarnation, expiresTime: now() + timeoutMs }, request, waitMs),
      ),
    stop: (instance, epoch) => order(STOP_TIMEOUT_MS, instance, epoch, (sandbox, fence) => sandbox.stopWorkspace(fence, STOP_GRACE_MS)),
    destroy: (instance, epoch) => order(DESTROY_TIMEOUT_MS, instance, epoch, (sandbox, fence) => sandbox.destroyWorkspace(fence)),
    destroyOrphan: (doId, epoch) =>
      askOrphan(DESTROY_TIMEOUT_MS, async () => control(doId).destroyOrphan(epoch, now() + DESTROY_TIMEOUT_MS)),
  };
}

async function ask(timeoutMs: number, call: () => Promise<Answer>): Promise<Observation> {
  let answer: Answer;
  try {
    answer = await withTimeout(timeoutMs, call());
  } catch (error) {
    return { kind: "Unknown", failure: uncertain(error) };
  }
  if (!answer.accepted && answer.refusal === "StaleEpoch") throw new LeaseLostError(LEASE_LOST);
  if (!answer.accepted && answer.refusal === "OtherIncarnation") {
    const message = "The sandbox belongs to another incarnation.";
    return { kind: "Unknown", failure: { class: "Misconfigured", reason: "Misconfigured", message } };
  }
  return interpret(answer.facts);
}

async function askBackup(timeoutMs: number, call: (timeoutMs: number) => Promise<BackupAnswer>): Promise<BackupOutcome> {
  let answer: BackupAnswer;
  try {
    answer = await withTimeout(timeoutMs, call(timeoutMs));
  } catch (error) {
    return { kind: "Unknown", message: uncertain(error).message };
  }
  if (answer.accepted) return interpretReport(answer.report);
  if (answer.refusal === "StaleEpoch") throw new LeaseLostError(LEASE_LOST);
  return { kind: "Unknown", message: "The sandbox refused the order." };
}

async function askOrphan(timeoutMs: number, call: () => Promise<OrphanAnswer>): Promise<OrphanOutcome> {
  let answer: OrphanAnswer;
  try {
    answer = await withTimeout(timeoutMs, call());
  } catch (error) {
    return { kind: "Unknown", failure: uncertain(error) };
  }
  if (answer === "StaleEpoch") throw new LeaseLostError(LEASE_LOST);
  if (answer === "Expired") return { kind: "Unknown", failure: uncertain(new Error("The order arrived too late.")) };
  return { kind: answer };
}

function uncertain(error: unknown): Failure {
  return { ...classify(evidenceOf(error)), class: "Uncertain" };
}

async function withTimeout<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The sandbox did not answer within ${timeoutMs} ms.`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
