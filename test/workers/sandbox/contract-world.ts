/** The fleet of real objects as the contract suite's world: the scripted machines are its hand behind the port. */
import { createSandboxFleet } from "../../../src/controller/sandbox-fleet.ts";
import type { Instance } from "../../../src/workspace.ts";
import type { ContractWorld } from "../../contract/fleet-subject.ts";
import { machineOf } from "./fake-container.ts";
import { bindings, endContainer, loseMemory, pause, type Subject, withBrokenD1 } from "./support.ts";

/** Real time passes here. */
const TIMEOUT_MS = 2000;

function subjectOf({ sandboxId, doId }: Instance): Subject {
  const id = bindings.FENCED.idFromString(doId);
  return { name: sandboxId, machine: machineOf(id), stub: bindings.FENCED.get(id) };
}

export function sandboxWorld(): ContractWorld {
  return {
    fleet: createSandboxFleet(bindings.FENCED, () => Date.now()),
    timeoutMs: TIMEOUT_MS,
    run: (work) => work,
    pass: pause,
    script: (instance, behaviour) => {
      const { script } = subjectOf(instance).machine;
      script.listensAfterMs = behaviour === "NeverReady" ? null : 0;
      script.refusals = behaviour === "NoCapacity" ? Infinity : 0;
      script.destroy = behaviour === "DeafToDestroy" ? "DoesNothing" : "Works";
    },
    exit: (instance, code) => endContainer(subjectOf(instance), code),
    loseMemory: async (instance) => {
      await loseMemory(subjectOf(instance));
    },
    runs: (instance) => subjectOf(instance).machine.running,
    containers: (instance) => subjectOf(instance).machine.containers,
    use: async (instance) => {
      await subjectOf(instance)
        .stub.exec("true")
        .catch(() => {});
    },
    startStranger: async (instance) => subjectOf(instance).machine.startUnseen(),
    answerRow: async (instance, answer) => {
      if (answer === "Fails") return withBrokenD1(subjectOf(instance));
      const uid = instance.sandboxId.slice(0, instance.sandboxId.lastIndexOf("-"));
      await bindings.DB.prepare("INSERT INTO workspaces (uid) VALUES (?)").bind(uid).run();
    },
  };
}
