import type { Sandbox } from "@cloudflare/sandbox";

/** The product's bindings, and the namespace of the class that has no gate. */
export interface DevEnv extends Env {
  readonly UNGATED: DurableObjectNamespace<Sandbox>;
}
