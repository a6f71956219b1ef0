import type { Container } from "./container.ts";
import type { DieMidOperationFault, Faults } from "./faults.ts";

/**
 * The faults that end a container in the middle of what it is asked for. A request is seen here, at the ingress; an operation only by
 * the container's own process, which is told the rule on its standard input and kills itself.
 */
export class OperationDeaths {
  #faults: Faults = {};
  #atRequests = 0;
  #atOperations = 0;

  /** "The first n" begin anew. */
  reset(faults: Faults): void {
    this.#faults = faults;
    this.#atRequests = 0;
    this.#atOperations = 0;
  }

  /** The request that kills this container, while the fault has deaths left. */
  requestRule(container: Container): DieMidOperationFault | undefined {
    const rule = this.#faults.dieMidOp;
    return rule !== undefined && applies(rule, container, this.#atRequests) ? rule : undefined;
  }

  diedAtRequest(): void {
    this.#atRequests += 1;
  }

  /** Tells the container's process what it is to die at; one that never was to die at anything is not spoken to. */
  announce(container: Container): void {
    const fault = this.#faults.dieAtOperation;
    const isToDie = fault !== undefined && applies(fault, container, this.#atOperations);
    if (container.process === undefined || (!isToDie && !container.doomed)) return;
    container.doomed = isToDie;
    const { operation, moment = "Before", command = null, occurrence = 1 } = fault ?? { operation: "" };
    container.process.tell({ dieAtOperation: isToDie ? { operation, moment, command, occurrence } : null });
  }

  /** Whether the end of its process was its own deed, and so this fault's. */
  diedAtOperation(container: Container): boolean {
    if (!container.doomed || container.process?.killedItself !== true) return false;
    this.#atOperations += 1;
    return true;
  }
}

interface Limits {
  readonly doId?: string;
  readonly times?: number;
}

function applies({ doId, times = Infinity }: Limits, container: Container, deaths: number): boolean {
  return (doId === undefined || doId === container.identity.doId) && deaths < times;
}
