/** Requests to a container's ports, which need no client: what of them is a user's activity. */
import { runInDurableObject } from "cloudflare:test";
import { getSandbox, type Sandbox } from "@cloudflare/sandbox";
import { describe, expect, test } from "vitest";
import { A_WHILE_MS, activityOf, moves } from "./activity-support.ts";
import { UNANSWERED } from "./fake-server.ts";
import { bindings, FENCE, pause, rejectionOf, runningSandbox, type Subject, until } from "./support.ts";

/** As much of the SDK as answers a preview URL. */
interface Previews {
  readonly currentRuntime: { isActive: () => Promise<boolean> };
  fetchPreviewIfRunning(request: Request, port: number, runtime: object): Promise<Response>;
}

describe("a request to a port", () => {
  const PORT = { headers: { "cf-container-target-port": "8080" } };

  test.for<[string, (subject: Subject) => Promise<Response>]>([
    ["fetch", async ({ stub }) => stub.fetch("http://sandbox/download", PORT)],
    ["containerFetch", async ({ stub }) => stub.containerFetch("http://sandbox/download", {}, 8080)],
    [
      "containerFetch of a user's sandbox",
      async (subject) => userSandbox(subject).containerFetch(new Request("http://sandbox/download"), 8080),
    ],
  ])("by %s is activity until the last chunk of its answer", async ([, request]) => {
    const subject = await runningSandbox({ holdsCommands: true });
    const response = await request(subject);
    expect(await moves(subject)).toBe(true);
    subject.machine.script.holdsCommands = false;
    expect(await response.text()).toBe("data: 1\n\ndata: 2\n\n");
    expect(response.headers.get("Content-Type")).toBe("text/event-stream");
    expect(await moves(subject)).toBe(false);
  });

  test("of a preview is activity until the last chunk of its answer", async () => {
    const subject = await runningSandbox({ holdsCommands: true });
    await runInDurableObject(subject.stub, async (instance) => {
      const previews = instance as unknown as Previews;
      // Instead of a port that was exposed.
      previews.currentRuntime.isActive = async () => true;
      const response = await previews.fetchPreviewIfRunning(new Request("http://localhost:8080/download"), 8080, {});
      await pause(A_WHILE_MS);
      subject.machine.script.holdsCommands = false;
      const before = Date.now();
      expect(await response.text()).toBe("data: 1\n\ndata: 2\n\n");
      expect((await instance.observeWorkspace(FENCE)).facts.activityTime).toBeGreaterThanOrEqual(before);
    });
    expect(await moves(subject)).toBe(false);
  });

  test("without a body is over with its answer", async () => {
    const subject = await runningSandbox();
    const response = await subject.stub.fetch("http://sandbox/empty", PORT);
    expect([response.status, response.body]).toEqual([204, null]);
    expect(await activityOf(subject)).not.toBeNull();
    expect(await moves(subject)).toBe(false);
  });

  test("that does not get through is over", async () => {
    const subject = await runningSandbox();
    subject.machine.script.network = "Lost";
    await rejectionOf(subject.stub.containerFetch("http://sandbox/download", {}, 8080));
    expect(await activityOf(subject)).not.toBeNull();
    expect(await moves(subject)).toBe(false);
  });

  test("that opens a WebSocket is activity with each message, in both directions, and not while nobody speaks", async () => {
    const subject = await runningSandbox();
    const { webSocket } = await subject.stub.fetch("http://sandbox/echo", { headers: { Upgrade: "websocket", Connection: "Upgrade" } });
    if (webSocket === null) throw new Error("no WebSocket");
    const heard: unknown[] = [];
    webSocket.addEventListener("message", ({ data }) => heard.push(data));
    webSocket.accept();
    expect(await moves(subject)).toBe(false);

    const silent = await activityOf(subject);
    webSocket.send(UNANSWERED);
    await until(async () => ((await activityOf(subject)) ?? 0) > (silent ?? 0));
    webSocket.send("hello");
    await until(() => heard.includes("hello"));
    expect(await moves(subject)).toBe(false);

    const spoken = await activityOf(subject);
    await runInDurableObject(subject.stub, () => [...subject.machine.sockets].at(-1)?.send("output"));
    await until(() => heard.includes("output"));
    expect(await activityOf(subject)).toBeGreaterThan(spoken ?? Infinity);
    webSocket.close();
  });
});

function userSandbox({ name }: Subject) {
  return getSandbox(bindings.FENCED as unknown as DurableObjectNamespace<Sandbox>, name);
}
