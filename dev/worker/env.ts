import type { Sandbox } from "@cloudflare/sandbox";
import type { NoWakeSandbox } from "../../src/index.ts";

/** The product's bindings, and the namespaces of the classes that no controller looks after. */
export interface DevEnv extends Env {
  readonly UNGATED: DurableObjectNamespace<Sandbox>;
  readonly STANDALONE: DurableObjectNamespace<NoWakeSandbox<DevEnv>>;
}
