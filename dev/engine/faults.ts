import { createHash } from "node:crypto";

/**
 * What goes wrong, and how often. A plain object, so that a test can print it beside the seed and have the same run again.
 * The rates are models; only the pattern (concurrent starts fail, sequential ones do not) is taken from bug reports.
 */
export interface Faults {
  /** Time from the start to the moment the container counts as listening, even if its process listens before. */
  readonly startDelay?: { readonly minMs: number; readonly maxMs: number };
  /** A start made while another container is in its start window is killed (exit 137) with this probability. */
  readonly overlapKill?: { readonly probability: number; readonly windowMs: number };
  /** While this many containers run or start, the first `times` starts of each object are refused. */
  readonly refuseAdmission?: { readonly whileRunning: number; readonly times: number };
  /** As overlapKill, but the object only loses contact; the container comes up later, and nobody knows of it. */
  readonly ghostStart?: GhostFault;
  /** A container that receives such a request through the ingress dies before it answers. */
  readonly dieMidOp?: DieMidOperationFault;
  /** A container kills itself (exit 137) when it is asked for such an operation, on whatever transport. */
  readonly dieAtOperation?: DieAtOperationFault;
  /** By DO id; "*" holds for every object without an entry of its own. */
  readonly objects?: Readonly<Record<string, ObjectFaults>>;
  /** The inventory answers with this status, for ever or the given number of times. */
  readonly inventory?: { readonly status: number; readonly times?: number };
  /** This share of the calls that start, signal or remove a container, and of those that list, is answered 500 and does nothing. */
  readonly flaky?: { readonly share: number };
}

export interface GhostFault {
  readonly probability: number;
  readonly windowMs: number;
  readonly upAfterMs: number;
  /** Draw at every start, not only at overlapping ones. */
  readonly forced?: boolean;
}

export interface DieMidOperationFault {
  readonly path: string;
  readonly exitCode: number;
  readonly doId?: string;
  readonly times?: number;
}

export interface DieAtOperationFault {
  /** Group and name in the SDK's own interface to a container: `backup.createArchive`. */
  readonly operation: string;
  /**
   * `Before` (the default): nothing is done yet. `After`: it is done, and not answered. `Sent`: the stream that answers it has arrived,
   * all but its end. Else when so much of that stream has been passed on.
   */
  readonly moment?: "Before" | "After" | { readonly sentBytes: number } | "Sent";
  /** Only commands with this text in them. */
  readonly command?: string;
  /** At the how manieth such call of a container; the first by default. */
  readonly occurrence?: number;
  readonly doId?: string;
  /** How many containers die so; all by default. */
  readonly times?: number;
}

export interface ObjectFaults {
  readonly startDelay?: { readonly minMs: number; readonly maxMs: number };
  readonly exit?: { readonly afterMs: number; readonly code: number };
  /** The container runs but never counts as listening. */
  readonly hangStart?: boolean;
  /** NoSuchImage: the create is refused; StartError: the start is, with this message. */
  readonly failStart?: "NoSuchImage" | { readonly message: string };
  readonly ignoreSigterm?: boolean;
}

export const CAPACITY_MESSAGE = "there is no container instance that can be provided to this durable object, try again later";

export interface StartSituation {
  readonly seed: number;
  /** 1 for the first admitted start of this engine. */
  readonly ordinal: number;
  /** Start times of the other containers that are starting and not listening yet. */
  readonly startingSince: readonly number[];
  readonly now: number;
}

export interface StartVerdict {
  readonly delayMs: number;
  readonly killAfterMs: number | null;
  readonly ghost: { readonly contactLostAfterMs: number; readonly upAfterMs: number } | null;
}

/** What happens to one admitted start. */
export function startVerdict(faults: Faults, object: ObjectFaults, situation: StartSituation): StartVerdict {
  const draw = (purpose: string) => drawFor(situation.seed, situation.ordinal, purpose);
  const overlaps = (windowMs: number) => situation.startingSince.some((since) => situation.now - since < windowMs);
  const range = object.startDelay ?? faults.startDelay;
  const delayMs = range === undefined ? 0 : between(range.minMs, range.maxMs, draw("delay"));
  const { ghostStart, overlapKill } = faults;
  if (ghostStart !== undefined && (ghostStart.forced === true || overlaps(ghostStart.windowMs)) && draw("ghost") < ghostStart.probability) {
    const contactLostAfterMs = momentOfLoss(ghostStart.windowMs, draw("loss"));
    return { delayMs, killAfterMs: null, ghost: { contactLostAfterMs, upAfterMs: ghostStart.upAfterMs } };
  }
  const killed = overlapKill !== undefined && overlaps(overlapKill.windowMs) && draw("kill") < overlapKill.probability;
  return { delayMs, killAfterMs: killed ? momentOfLoss(overlapKill.windowMs, draw("loss")) : null, ghost: null };
}

/** The faults of one object. */
export function faultsOf(faults: Faults, doId: string): ObjectFaults {
  return faults.objects?.[doId] ?? faults.objects?.["*"] ?? {};
}

/** Uniform in [0, 1), the same for the same three arguments. */
export function drawFor(seed: number, ordinal: number, purpose: string): number {
  const digest = createHash("sha256").update(`${seed}/${ordinal}/${purpose}`).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** 160 to 760 ms for a window of 800 ms: inside the window, but never at once. */
function momentOfLoss(windowMs: number, draw: number): number {
  return between(windowMs * 0.2, windowMs * 0.95, draw);
}

function between(minimum: number, maximum: number, draw: number): number {
  return Math.round(minimum + (maximum - minimum) * draw);
}
