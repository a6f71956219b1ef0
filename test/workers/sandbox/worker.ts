/** The Worker of these tests: the class under test and, as a control, the SDK's own, both over a fake container. */
import { ContainerProxy, Sandbox } from "@cloudflare/sandbox";
import { NoWakeSandbox } from "../../../src/sandbox/no-wake-sandbox.ts";
import { WorkspaceSandbox, type SandboxEnv } from "../../../src/sandbox/workspace-sandbox.ts";
import { installFakeContainer } from "./fake-container.ts";

export { ContainerProxy };

export class FencedSandbox extends WorkspaceSandbox {
  constructor(ctx: DurableObjectState<{}>, env: SandboxEnv) {
    installFakeContainer(ctx);
    super(ctx, env);
  }
}

/** The non-waking backup on its own, without a controller. */
export class StandaloneSandbox extends NoWakeSandbox {
  constructor(ctx: DurableObjectState<{}>, env: unknown) {
    installFakeContainer(ctx);
    super(ctx, env);
  }
}

export class UnfencedSandbox extends Sandbox {
  constructor(ctx: DurableObjectState<{}>, env: unknown) {
    installFakeContainer(ctx);
    super(ctx, env);
  }
}

export default {
  fetch: () => new Response(null, { status: 404 }),
};
