import { describe, expect, it, vi } from "vitest";
import { RemovalJudge } from "../../dev/engine/removal-judge.ts";

const KEY = "Box/1";

async function unwatchedDelete(): Promise<{ judge: RemovalJudge; verdict: Promise<string> }> {
  const judge = new RemovalJudge();
  expect(await judge.appDeleted(KEY, () => false)).toBe("Undecided");
  return { judge, verdict: judge.verdict(KEY) };
}

describe("a delete of an app container", () => {
  it("is a destroy when a wait call is open, and stays open", async () => {
    expect(await new RemovalJudge().appDeleted(KEY, () => true)).toBe("Destroy");
  });

  it("is undecided when the wait call turns out to be closed", async () => {
    const answers = [true, false];
    expect(await new RemovalJudge().appDeleted(KEY, () => answers.shift() ?? false)).toBe("Undecided");
  });

  it("is an eviction when the sidecar's delete came with it, before or after", async () => {
    const judge = new RemovalJudge();
    judge.sidecarDeleted(KEY);
    expect(await judge.appDeleted(KEY, () => false)).toBe("Eviction");
    const later = await unwatchedDelete();
    later.judge.removalAwaited(KEY);
    later.judge.sidecarDeleted(KEY);
    expect(await later.verdict).toBe("Eviction");
  });

  it("is not taken for an eviction because a start has replaced the sidecar", async () => {
    const judge = new RemovalJudge();
    judge.sidecarDeleted(KEY);
    judge.sidecarCreated(KEY);
    expect(await judge.appDeleted(KEY, () => false)).toBe("Undecided");
  });

  it("is not taken for an eviction because of another object's sidecar", async () => {
    const judge = new RemovalJudge();
    judge.sidecarDeleted("Box/2");
    expect(await judge.appDeleted(KEY, () => false)).toBe("Undecided");
  });

  it("is an eviction when the object comes back and looks", async () => {
    const { judge, verdict } = await unwatchedDelete();
    judge.inspected(KEY);
    expect(await verdict).toBe("Eviction");
  });

  it("is a destroy when the object creates or deletes again", async () => {
    const { judge, verdict } = await unwatchedDelete();
    judge.createdOrDeletedAgain(KEY);
    expect(await verdict).toBe("Destroy");
  });

  it.each([
    ["a destroy when nothing follows but the wait for its end", true, "Destroy"],
    ["an eviction cut short when not even that follows", false, "Eviction"],
  ])("is %s", async (_name, awaited, expected) => {
    vi.useFakeTimers();
    try {
      const { judge, verdict } = await unwatchedDelete();
      if (awaited) judge.removalAwaited(KEY);
      await vi.runAllTimersAsync();
      expect(await verdict).toBe(expected);
    } finally {
      vi.useRealTimers();
    }
  });
});
